// ring_link.hpp: the link between the ranks of one host: frames through rings in shared memory, and reading a peer's memory.
// SPDX-License-Identifier: Apache-2.0
//
// A ring per ordered pair (ring.hpp), made when it is first used; long payloads travel in cells beside it (cells.hpp). This link does not notice the end of a peer; the network does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/link.hpp>

#include "link/cells.hpp"
#include "link/ring.hpp"
#include "link/ring_control_block.hpp"
#include "link/ring_memory.hpp"
#include "shm/local_peers.hpp"

namespace tutti::link {

struct RingSetup {
  std::shared_ptr<shm::LocalPeers> local_peers{};
  // By rank: where its control block is (lay_out_control_block), or no_control_block_offset for ranks that this link does not reach.
  // Two ranks must agree about each other: both find each other's arena, or neither names the other's control block.
  std::vector<std::uint64_t> control_blocks{};
  RingOptions options{};
};

class RingLink final : public Link {
 public:
  // InvalidArgument if an option or a control block is out of range.
  explicit RingLink(RingSetup setup);
  ~RingLink() override;

  [[nodiscard]] std::string_view name() const override { return "shm"; }
  [[nodiscard]] Limits limits() const override;
  void listen(LinkListener* listener) override { listener_ = listener; }
  Taken send(int peer, FrameOrder order, const Frame& frame, void* owner) override;
  bool poll() override;
  bool peek(int peer, int spins, Frame& frame) override;
  void pop(int peer) override;
  void drain(int peer) override;
  void disconnect(int peer) override;
  [[nodiscard]] bool is_last_poll_before_sleep() const override;
  void abandon() override { abandoned_ = true; }

  RemoteKey expose(std::span<const std::byte> memory) override { return memory_.expose(memory); }
  void revoke(const RemoteKey& key) override { memory_.revoke(key); }
  [[nodiscard]] bool can_get(int peer, const RemoteKey& key, std::int64_t bytes) override {
    return memory_.can_get(peer, key, bytes);
  }
  [[nodiscard]] bool is_exposed(int peer, const RemoteKey& key, std::int64_t bytes) override {
    return memory_.is_exposed(peer, key, bytes);
  }
  GetStatus get(RemoteGet& get, std::int64_t bytes_max) override { return memory_.get(get, bytes_max); }

 private:
  struct RingPeer {
    int rank = -1;
    bool is_gone = false;
    shm::ArenaHeader* doorbell = nullptr;
    RingControl* ours = nullptr;  // in this rank's control block, for the peer
    const RingControl* theirs = nullptr;
    RingWriter out{};
    RingReader in{};
    std::uint64_t read_lines_told = 0;
    Record peeked{};
    Cells::Cell peeked_cell{};
    // A frame that comes in several records, of which the first has come.
    bool is_landing = false;
    std::uint64_t landing = 0;
    std::int64_t landing_bytes = 0, landed_bytes = 0;
  };

  [[nodiscard]] RingPeer& peer_at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  void connect(RingPeer& peer, const RingSetup& setup);
  void make_ring(RingPeer& peer);
  [[nodiscard]] bool write(RingPeer& peer, const Frame& frame);
  [[nodiscard]] bool write_in_chunks(RingPeer& peer, const Frame& frame);
  [[nodiscard]] bool write_in_cells(RingPeer& peer, const Frame& frame, std::size_t piece_bytes);
  // The payload that a record brings behind so many bytes of its body, and the cell that it lies in, if any.
  struct Part {
    std::span<const std::byte> payload{};
    Cells::Cell cell{};
  };
  [[nodiscard]] Part part_of(const Record& record, std::size_t ahead_bytes) const;
  [[nodiscard]] bool discover(RingPeer& peer);
  void look_for_rings();
  [[nodiscard]] bool read(RingPeer& peer);
  [[nodiscard]] bool read_or_fail(RingPeer& peer);
  void take(RingPeer& peer, const Record& record);
  void begin_landing(RingPeer& peer, const Record& record);
  void land(RingPeer& peer, std::span<const std::byte> payload);
  void tell_progress(RingPeer& peer);
  void fail(RingPeer& peer, const std::string& reason);

  RingOptions options_;
  std::shared_ptr<shm::LocalPeers> local_peers_;
  RingMemory memory_;
  Cells cells_;
  const shm::ArenaHeader* own_doorbell_;
  LinkListener* listener_ = nullptr;
  std::vector<RingPeer> peers_;         // by rank
  std::vector<RingPeer*> connected_;    // whose rings to this rank are open
  std::vector<RingPeer*> unconnected_;  // those that have sent nothing yet
  unsigned polls_ = 0;
  bool abandoned_ = false;
};

}  // namespace tutti::link
