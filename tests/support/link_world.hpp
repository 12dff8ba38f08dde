// link_world.hpp: two ranks and a link between them, of any kind, for the contract that all links keep.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tutti/link.hpp>

namespace tutti::link {

// Writes down what a link tells. Payloads that do not come with their frame land in memory of its own.
struct LinkRecorder final : LinkListener {
  struct Arrived {
    int peer = -1;
    std::uint8_t type = 0;
    std::vector<std::byte> head{}, payload{};
    bool is_whole = true;
  };

  void frame(int peer, const Frame& frame) override;
  std::uint64_t frame_begins(int peer, const Frame& frame, std::int64_t payload_bytes) override;
  std::byte* landing(std::uint64_t number) override;
  void frame_ends(std::uint64_t number) override;
  void sent(void* owner, std::int64_t payload_bytes) override { sent_frames.emplace_back(owner, payload_bytes); }
  void control(int peer, std::span<const std::byte> message) override;
  void lost(int peer, std::string_view) override { lost_peers.push_back(peer); }
  void unreachable(int peer, std::string_view) override { lost_peers.push_back(peer); }
  void parted(int peer) override { parted_peers.push_back(peer); }
  // Whole frames so far, in order.
  [[nodiscard]] std::size_t whole_count() const;

  std::deque<Arrived> frames;  // landings point into it
  std::vector<std::pair<void*, std::int64_t>> sent_frames;
  std::vector<std::vector<std::byte>> controls;
  std::vector<int> lost_peers, parted_peers;
  bool discards = false;  // throws payloads that are still to come away
  bool rejects = false;   // calls every frame nonsense
};

class LinkWorld {
 public:
  virtual ~LinkWorld() = default;
  virtual Link& at(int rank) = 0;
  // Lets both ranks poll, and time pass. False when nothing moves any more.
  virtual bool step() = 0;
  // The rank is gone without a word. Only where the link notices that.
  virtual void kill(int rank) = 0;
  // A link that also notices the end of peers; nullptr otherwise.
  [[nodiscard]] Network* network(int rank) { return dynamic_cast<Network*>(&at(rank)); }
  // Steps until the condition holds; false if it does not for a long time.
  bool drive(const std::function<bool()>& until);
  void settle();

  LinkRecorder heard[2];
};

struct LinkKind {
  const char* name;
  std::unique_ptr<LinkWorld> (*make)();
  bool is_network = false;
  bool reads_memory = false;
};
std::vector<LinkKind> all_link_kinds();

}  // namespace tutti::link
