// simulated_endpoint.hpp: one rank's transport in a simulated cluster.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tutti/transport.hpp>

#include "transport/matching_queue.hpp"
#include "transport/simulated_network.hpp"

namespace tutti::transport {

// What an endpoint asks of the cluster it lives in.
class SimulatedHost {
 public:
  virtual ~SimulatedHost() = default;
  virtual EventQueue& events() = 0;
  virtual SimulatedNetwork& network() = 0;
  // False while the rank is stalled, busy or dead: then its program does not run.
  [[nodiscard]] virtual bool may_run(int rank) const = 0;
  [[nodiscard]] virtual bool alive(int rank) const = 0;
  // Gives the rank the processor, now or at a time.
  virtual void make_ready(int rank) = 0;
  virtual void make_ready_at(int rank, TimePoint time) = 0;
};

// Small messages travel whole while the receiver's credit lasts; others are announced, wait at the sender until their
// receive is posted, and then travel in fragments. Headers always travel, so that a message that is waited for never
// queues behind those that nobody asked for. The sender's memory is read when a packet leaves its network card, which
// sends one packet after the other; the receiver's is written by poll().
class SimulatedEndpoint final : public Transport {
 public:
  SimulatedEndpoint(int rank, const SimulationOptions& options, SimulatedHost& host);

  [[nodiscard]] std::string_view name() const override { return "simulated"; }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return options_.size; }
  void listen(TransportListener* listener) override { listener_ = listener; }

  void send(Transfer& transfer) override;
  void recv(Transfer& transfer) override;
  void cancel(Transfer& transfer) override;
  void give_back(Transfer& receive) override;
  void forget(std::uint64_t group, std::uint64_t up_to_sequence) override;
  void post(int peer, std::span<const std::byte> message) override;
  void attach(int peer) override;
  bool poll() override;
  // Returns at once: it asks to be given the processor again at that time. Nothing blocks in a simulation.
  void wait(TimePoint until, Events events) override;
  void wake() override { host_->make_ready(rank_); }
  bool heard_from(int peer) override { return heard_.erase(peer) > 0; }
  [[nodiscard]] bool is_flushed() const override { return departures_.empty() && !card_busy_; }
  void close(TimePoint deadline) override;
  void abandon() override { closed_ = true; }

  // From the network: to be seen by the next poll().
  void deliver(Packet packet);
  // Unexpected payload held here, for tests of the bound.
  [[nodiscard]] std::int64_t unexpected_bytes() const { return matching_queue_.held_bytes(); }

 private:
  struct Sending {                 // a send that was started
    Transfer* transfer = nullptr;  // none: cancelled
    std::uint64_t id = 0;
    int peer = 0;
    std::int64_t bytes = 0;
    bool eager = false;
    bool header_left = false;
    std::int64_t left_bytes = 0;  // of the payload, already on the wire
  };
  struct Receiving {               // a matched message of which bytes are still to come
    Transfer* transfer = nullptr;  // none: cancelled, the bytes are thrown away
    std::int64_t missing_bytes = 0;
  };
  struct Departure {  // what the network card does next
    Packet packet;
    std::shared_ptr<Sending> sending;  // whose memory it reads, if it carries payload
    std::int64_t bytes = 0;
  };

  static void fail(Transfer& transfer, std::string why);
  [[nodiscard]] std::string unreachable(int peer) const;
  void depart(Departure departure);
  void start_card();
  void departed();
  void answer(Packet::Kind kind, int peer, std::uint64_t id, std::int64_t bytes = 0);
  void finish(const std::shared_ptr<Sending>& sending);
  void take_back(const std::shared_ptr<Sending>& sending);

  void handle(Packet& packet);
  void on_message(Packet& packet);
  void on_cts(const Packet& packet);
  void on_decline(const Packet& packet);
  void on_fragment(const Packet& packet);
  void on_withdraw(const Packet& packet);
  void on_gone(int peer, const std::string& reason);
  void expect_fragments(Transfer& receive, int peer, std::uint64_t id);
  void drop(UnexpectedMessage& unexpected);
  void drop_all(UnexpectedMessage* chain);

  int rank_;
  SimulationOptions options_;
  SimulatedHost* host_;
  TransportListener* listener_ = nullptr;
  MatchingQueue matching_queue_;
  std::deque<Packet> inbox_;
  std::deque<Departure> departures_;
  bool card_busy_ = false;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, std::shared_ptr<Sending>> sendings_;     // not finished, by id
  std::vector<std::shared_ptr<Sending>> sent_;                     // to be marked done by the next poll
  std::map<std::pair<int, std::uint64_t>, Receiving> receivings_;  // by peer and id
  std::unordered_map<int, std::int64_t> used_credit_;              // by receiver
  std::set<std::pair<int, std::uint64_t>> withdrawn_;              // announced, unexpected, and taken back
  std::set<int> heard_;                                            // since heard_from() asked
  std::set<int> lost_;                                             // nothing is heard of them any more
  std::map<int, std::string> gone_;                                // peers lost or left, and why
  bool closed_ = false;
};

}  // namespace tutti::transport
