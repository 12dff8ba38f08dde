// simulated_link.hpp: one rank's network in a simulated cluster.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tutti/link.hpp>

#include "verify/simulated_network.hpp"

namespace tutti::link {

class SimulatedLink;

// What a link asks of the cluster it lives in.
class SimulatedHost {
 public:
  virtual ~SimulatedHost() = default;
  virtual EventQueue& events() = 0;
  virtual SimulatedNetwork& network() = 0;
  virtual SimulatedLink& link(int rank) = 0;
  // False while the rank is stalled, busy or dead: then its program does not run.
  [[nodiscard]] virtual bool may_run(int rank) const = 0;
  [[nodiscard]] virtual bool alive(int rank) const = 0;
  // Gives the rank the processor, now or at a time.
  virtual void make_ready(int rank) = 0;
  virtual void make_ready_at(int rank, TimePoint time) = 0;
};

// The sender's memory is read when a frame leaves its network card, which sends one after the other and takes a few frames per peer;
// replies do not wait for the card. The ranks of a node can read each other's memory, a segment at a time, which takes as long as a
// message of that size. The listener is called by poll() alone.
class SimulatedLink final : public Network {
 public:
  SimulatedLink(int rank, const SimulationOptions& options, SimulatedHost& host)
      : rank_(rank), options_(options), host_(&host) {}

  [[nodiscard]] std::string_view name() const override { return "simulated"; }
  [[nodiscard]] Limits limits() const override;
  void listen(LinkListener* listener) override { listener_ = listener; }
  Taken send(int peer, FrameOrder order, const Frame& frame, void* owner) override;
  std::size_t withdraw(int peer, const void* owner) override;
  bool poll() override;
  [[nodiscard]] bool is_flushed() const override { return departures_.empty() && !card_busy_; }
  void abandon() override { closed_ = true; }

  RemoteKey expose(std::span<const std::byte> memory) override;
  void revoke(const RemoteKey& key) override;
  [[nodiscard]] bool can_get(int peer, const RemoteKey& key, std::int64_t bytes) override;
  [[nodiscard]] bool is_exposed(int peer, const RemoteKey& key, std::int64_t bytes) override;
  GetStatus get(RemoteGet& get, std::int64_t bytes_max) override;
  void cancel_get(RemoteGet& get) override;

  void post(int peer, std::span<const std::byte> message) override;
  void attach(int peer) override;
  bool heard_from(int peer) override { return heard_.erase(peer) > 0; }
  // Returns at once: it asks to be given the processor again at that time. Nothing blocks in a simulation.
  bool wait(TimePoint until, Transport::Events events) override;
  void wake() override { host_->make_ready(rank_); }
  void close(TimePoint deadline) override;

  // From the network: to be seen by the next poll().
  void deliver(Packet packet);

 private:
  struct Departure {  // what the network card does next
    Packet packet;
    std::span<const std::byte> payload;
    FrameOrder order;
    void* owner;
    bool withdrawn = false;
  };
  struct Sent {
    void* owner;
    std::int64_t bytes;
  };
  struct Segment {  // of a peer's memory, that is being read
    std::uint64_t number;
    int peer;
    std::uint64_t key;
    std::int64_t offset, bytes;
  };
  struct Read {  // how it went
    std::vector<std::byte> bytes{};
    bool has_come = false;
    bool was_exposed = true;
    bool owner_died = false;
  };

  [[nodiscard]] bool is_same_node(int peer) const {
    return rank_ / options_.ranks_per_node == peer / options_.ranks_per_node;
  }
  [[nodiscard]] bool is_gone(int peer) const { return closed_ || gone_.contains(peer); }
  void start_card();
  void departed();
  void handle(Packet& packet);
  void take_frame(const Packet& packet);
  void lose(int peer);
  void drop_departures(int peer);
  void start_read(RemoteGet& get, std::int64_t bytes_max);
  void finish_read(const Segment& segment);

  int rank_;
  SimulationOptions options_;
  SimulatedHost* host_;
  LinkListener* listener_ = nullptr;
  std::deque<Packet> inbox_;
  std::deque<Departure> departures_;
  std::map<std::pair<int, FrameOrder>, int> waiting_counts_;  // of departures
  std::vector<Sent> sent_;                                    // to be told by the next poll
  bool card_busy_ = false;
  std::unordered_map<std::uint64_t, std::span<const std::byte>> exposed_;  // by number
  std::uint64_t last_key_ = 0, last_read_ = 0;
  std::map<std::uint64_t, Read> reads_;
  std::set<int> heard_;  // since heard_from() asked
  std::set<int> lost_;   // nothing is heard of them any more
  std::set<int> gone_;   // peers lost or left
  bool closed_ = false;
};

}  // namespace tutti::link
