// link_world.cpp: two ranks over tcp, rings in shared memory, the simulated network, and the example of docs/extending.md.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/link_world.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <tutti/error.hpp>

#include "examples/extending/queue_link.hpp"
#include "link/ring_link.hpp"
#include "link/tcp_link.hpp"
#include "link/ucx.hpp"
#include "verify/simulated_link.hpp"

namespace tutti::link {

using namespace std::chrono_literals;

void LinkRecorder::frame(int peer, const Frame& frame) {
  if (rejects) throw Error("nonsense");
  frames.push_back({.peer = peer,
                    .type = frame.type,
                    .head = {frame.head.begin(), frame.head.end()},
                    .payload = {frame.payload.begin(), frame.payload.end()}});
}

std::uint64_t LinkRecorder::frame_begins(int peer, const Frame& frame, std::int64_t payload_bytes) {
  if (rejects) throw Error("nonsense");
  frames.push_back({.peer = peer,
                    .type = frame.type,
                    .head = {frame.head.begin(), frame.head.end()},
                    .payload = std::vector<std::byte>(static_cast<std::size_t>(payload_bytes)),
                    .is_whole = false});
  return frames.size() - 1;
}

std::byte* LinkRecorder::landing(std::uint64_t number) { return discards ? nullptr : frames[number].payload.data(); }

void LinkRecorder::frame_ends(std::uint64_t number) { frames[number].is_whole = true; }

void LinkRecorder::control(int, std::span<const std::byte> message) {
  controls.emplace_back(message.begin(), message.end());
}

std::size_t LinkRecorder::whole_count() const {
  return static_cast<std::size_t>(std::ranges::count(frames, true, &Arrived::is_whole));
}

bool LinkWorld::drive(const std::function<bool()>& until) {
  const TimePoint deadline = steady_clock().now() + 30s;
  while (!until()) {
    if (steady_clock().now() > deadline) return false;
    if (!step()) std::this_thread::sleep_for(200us);
  }
  return true;
}

// Quiet for a while: what the kernel still moves between sockets makes itself heard within it.
void LinkWorld::settle() {
  for (int quiet = 0; quiet < 20;) {
    quiet = step() ? 0 : quiet + 1;
    if (quiet > 0) std::this_thread::sleep_for(500us);
  }
}

namespace {

class LiveLinks : public LinkWorld {
 public:
  Link& at(int rank) override { return *links_[static_cast<std::size_t>(rank)]; }
  bool step() override {
    bool moved = false;
    for (const auto& link : links_) moved |= link != nullptr && link->poll();
    return moved;
  }
  void kill(int rank) override { links_[static_cast<std::size_t>(rank)].reset(); }

 protected:
  void add(std::unique_ptr<Link> link) {
    link->listen(&heard[links_.size()]);
    links_.push_back(std::move(link));
  }

 private:
  std::vector<std::unique_ptr<Link>> links_;
};

class TcpLinks final : public LiveLinks {
 public:
  explicit TcpLinks(wire::Encryption encryption) {
    std::vector<wire::Listener> listeners;
    std::vector<wire::Address> table;
    for (int rank = 0; rank < 2; ++rank) {
      table.push_back(listeners.emplace_back(open_listener(wire::Address::loopback())).address());
    }
    const wire::Secret secret = wire::make_secret();
    for (int rank = 0; rank < 2; ++rank) {
      add(std::make_unique<TcpLink>(TcpSetup{.rank = rank,
                                             .listener = std::move(listeners[static_cast<std::size_t>(rank)]),
                                             .table = table,
                                             .secret = secret,
                                             .clock = steady_clock(),
                                             .world = 3,
                                             .options = {.encryption = encryption}}));
    }
  }
};

class RingLinks final : public LiveLinks {
 public:
  explicit RingLinks(const RingOptions& options) {
    std::vector<std::shared_ptr<shm::Arena>> arenas;
    std::vector<shm::ArenaAddress> addresses;
    std::vector<std::uint64_t> control_blocks;
    for (int rank = 0; rank < 2; ++rank) {
      const auto& arena = arenas.emplace_back(std::make_shared<shm::Arena>(shm::ArenaOptions{.bytes = 16 << 20}));
      addresses.push_back(arena->address());
      control_blocks.push_back(lay_out_control_block(*arena, 2));
    }
    for (int rank = 0; rank < 2; ++rank) {
      const auto& arena = arenas[static_cast<std::size_t>(rank)];
      add(std::make_unique<RingLink>(RingSetup{.local_peers = std::make_shared<shm::LocalPeers>(arena, rank, addresses),
                                               .control_blocks = control_blocks,
                                               .options = options}));
    }
  }
};

// Over the transports of UCX that every Linux has. Small limits, so that small tests reach every path.
class UcxLinks final : public LiveLinks {
 public:
  explicit UcxLinks(const char* transports, const char* devices = "") {
    const UcxOptions options{.transports = transports, .devices = devices, .in_flight_bytes_max = 300'000};
    std::vector<std::unique_ptr<UcxWorker>> workers;
    std::vector<std::string> addresses;
    for (int rank = 0; rank < 2; ++rank) addresses.push_back(workers.emplace_back(open_ucx(options))->address());
    const wire::Secret secret = wire::make_secret();
    for (int rank = 0; rank < 2; ++rank) {
      add(make_ucx_link({.worker = std::move(workers[static_cast<std::size_t>(rank)]),
                         .rank = rank,
                         .addresses = addresses,
                         .on_this_host = {true, true},
                         .secret = secret,
                         .world = 3,
                         .options = options}));
    }
  }
};

class QueueLinks final : public LiveLinks {
 public:
  QueueLinks() {
    const auto queues = std::make_shared<extending::Queues>();
    for (int rank = 0; rank < 2; ++rank) add(std::make_unique<extending::QueueLink>(rank, queues));
  }
};

class SimulatedLinks final : public LinkWorld, private SimulatedHost {
 public:
  SimulatedLinks()
      : events_(clock_), network_(options_, events_, Random(5), [this](Packet packet) {
          const int to = packet.to;
          link(to).deliver(std::move(packet));
        }) {
    SimulatedHost& host = *this;
    for (int rank = 0; rank < 2; ++rank) {
      links_.push_back(std::make_unique<SimulatedLink>(rank, options_, host));
      links_.back()->listen(&heard[rank]);
    }
  }
  Link& at(int rank) override { return link(rank); }
  bool step() override {
    bool moved = false;
    for (int rank = 0; rank < 2; ++rank) moved |= alive_[rank] && link(rank).poll();
    return moved || events_.run_next();
  }
  void kill(int rank) override {
    alive_[rank] = false;
    network_.kill(rank);
  }

 private:
  EventQueue& events() override { return events_; }
  SimulatedNetwork& network() override { return network_; }
  SimulatedLink& link(int rank) override { return *links_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] bool may_run(int rank) const override { return alive_[rank]; }
  [[nodiscard]] bool alive(int rank) const override { return alive_[rank]; }
  void make_ready(int) override {}
  void make_ready_at(int, TimePoint) override {}

  SimulationOptions options_{.ranks_per_node = 2};
  VirtualClock clock_;
  EventQueue events_;
  SimulatedNetwork network_;
  std::vector<std::unique_ptr<SimulatedLink>> links_;
  bool alive_[2] = {true, true};
};

}  // namespace

std::vector<LinkKind> all_link_kinds() {
  using Made = std::unique_ptr<LinkWorld>;
  std::vector<LinkKind> kinds{
      {"tcp", []() -> Made { return std::make_unique<TcpLinks>(wire::Encryption::none); }, true, false},
      {"tls", []() -> Made { return std::make_unique<TcpLinks>(wire::Encryption::tls); }, true, false},
      {"rings", []() -> Made { return std::make_unique<RingLinks>(RingOptions{}); }, false, true},
      {"rings_without_cross_memory",
       []() -> Made { return std::make_unique<RingLinks>(RingOptions{.cross_memory = false}); }},
      {"rings_with_cells",
       []() -> Made {
         return std::make_unique<RingLinks>(RingOptions{.cells = 5, .bulk_cells = 3, .cell_bytes = 4096});
       },
       false, true},
      {"simulated", []() -> Made { return std::make_unique<SimulatedLinks>(); }, true, true},
      {"queues_of_the_example", []() -> Made { return std::make_unique<QueueLinks>(); }},
  };
  if (!find_ucx().problem.empty()) return kinds;
  kinds.push_back({"ucx_tcp", []() -> Made { return std::make_unique<UcxLinks>("tcp", "lo"); }});
  kinds.push_back({"ucx_shared_memory", []() -> Made { return std::make_unique<UcxLinks>("posix,cma"); }});
  return kinds;
}

}  // namespace tutti::link
