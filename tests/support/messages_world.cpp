// messages_world.cpp: worlds over tcp (IPv4 and IPv6), shared memory, both and simulated, and parcels with known content.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/messages_world.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>

#include "base/hash.hpp"
#include "examples/extending/queue_link.hpp"
#include "link/ucx.hpp"
#include "verify/simulated_cluster.hpp"

namespace tutti::messages {

namespace {

using namespace std::chrono_literals;

// A test that fails waits this long; sanitizers on a busy machine need much.
constexpr Duration patience = 30s;

// Ranks that are driven by the machine's clock.
class LiveWorld : public MessagesWorld {
 public:
  Messages& at(int rank) override { return *endpoints_[static_cast<std::size_t>(rank)]; }
  const Clock& clock() override { return steady_clock(); }

  bool step() override {
    bool moved = false;
    for (const auto& endpoint : endpoints_) moved |= endpoint != nullptr && endpoint->poll();
    return moved;
  }

  bool drive(const std::function<bool()>& until) override {
    const TimePoint deadline = clock().now() + patience;
    while (!until()) {
      if (clock().now() > deadline) return false;
      if (!step()) rest(1ms);
    }
    return true;
  }

  // Quiet for a while: what the kernel still moves between the sockets makes itself heard within it.
  void settle() override {
    for (TimePoint quiet_since = clock().now(); clock().now() - quiet_since < quiet_;) {
      if (step()) {
        quiet_since = clock().now();
      } else {
        rest(1ms);
      }
    }
  }

  void kill(int rank) override { endpoints_[static_cast<std::size_t>(rank)].reset(); }

 protected:
  Duration quiet_ = 12ms;
  void add(std::unique_ptr<Messages> endpoint) { endpoints_.push_back(std::move(endpoint)); }
  void listen() {
    listeners = std::vector<Recorder>(endpoints_.size());
    for (std::size_t rank = 0; rank < endpoints_.size(); ++rank) endpoints_[rank]->listen(&listeners[rank]);
  }

 private:
  void rest(Duration duration) {
    const auto living = std::find_if(endpoints_.begin(), endpoints_.end(), [](const auto& e) { return e != nullptr; });
    (*living)->wait(clock().now() + duration, Transport::Events::all);
  }

  std::vector<std::unique_ptr<Messages>> endpoints_;
};

// Small limits, so that small tests reach every path.
const link::TcpOptions small_tcp{
    .streams = 3, .eager_bytes_max = 4096, .credit_bytes = 64 << 10, .fragment_bytes_max = 50'000};

class TcpWorld final : public LiveWorld {
 public:
  TcpWorld(int size, const wire::Address& address, wire::Encryption encryption = wire::Encryption::none) {
    link::TcpOptions options = small_tcp;
    options.encryption = encryption;
    eager_bytes_max = small_tcp.eager_bytes_max;
    credit_bytes = small_tcp.credit_bytes;
    int rank = 0;
    for (auto& tcp : make_tcp_links(size, address, options)) {
      add(std::make_unique<Messages>(
          MessagesSetup{.rank = rank++, .size = size, .clock = steady_clock(), .network = std::move(tcp)}));
    }
    listen();
  }
};

class RingWorld final : public LiveWorld {
 public:
  RingWorld(int size, const RingWorldOptions& options) {
    eager_bytes_max = options.ring.eager_bytes_max;
    credit_bytes = options.ring.credit_bytes;
    if (size <= options.ranks_per_host) quiet_ = 3ms;  // what one rank wrote into shared memory, the next poll finds
    for (auto& endpoint : make_ring_endpoints(size, options)) add(std::move(endpoint));
    listen();
  }
};

// The link of docs/extending.md, beside the network.
class QueueWorld final : public LiveWorld {
 public:
  explicit QueueWorld(int size) {
    const auto queues = std::make_shared<extending::Queues>();
    auto networks = make_tcp_links(size, wire::Address::loopback(), small_tcp);
    for (int rank = 0; rank < size; ++rank) {
      add(std::make_unique<Messages>(
          MessagesSetup{.rank = rank,
                        .size = size,
                        .clock = steady_clock(),
                        .network = std::move(networks[static_cast<std::size_t>(rank)]),
                        .local_link = std::make_unique<extending::QueueLink>(rank, queues, size),
                        .local = std::vector<bool>(static_cast<std::size_t>(size), true)}));
    }
    eager_bytes_max = small_tcp.eager_bytes_max;
    credit_bytes = small_tcp.credit_bytes;
    listen();
  }
};

// All messages through UCX, beside the network.
class UcxWorld final : public LiveWorld {
 public:
  explicit UcxWorld(int size) {
    const link::UcxOptions options{.transports = "tcp",
                                   .devices = "lo",
                                   .eager_bytes_max = small_tcp.eager_bytes_max,
                                   .credit_bytes = small_tcp.credit_bytes,
                                   .fragment_bytes_max = small_tcp.fragment_bytes_max,
                                   .in_flight_bytes_max = 120'000};
    eager_bytes_max = options.eager_bytes_max;
    credit_bytes = options.credit_bytes;
    std::vector<std::unique_ptr<link::UcxWorker>> workers;
    std::vector<std::string> addresses;
    for (int rank = 0; rank < size; ++rank)
      addresses.push_back(workers.emplace_back(link::open_ucx(options))->address());
    const wire::Secret secret = wire::make_secret();
    const std::vector<bool> all(static_cast<std::size_t>(size), true);
    auto networks = make_tcp_links(size, wire::Address::loopback(), small_tcp);
    for (int rank = 0; rank < size; ++rank) {
      auto ucx = link::make_ucx_link({.worker = std::move(workers[static_cast<std::size_t>(rank)]),
                                      .rank = rank,
                                      .addresses = addresses,
                                      .on_this_host = all,
                                      .secret = secret,
                                      .world = 77,
                                      .options = options});
      add(std::make_unique<Messages>(MessagesSetup{.rank = rank,
                                                   .size = size,
                                                   .clock = steady_clock(),
                                                   .network = std::move(networks[static_cast<std::size_t>(rank)]),
                                                   .local_link = std::move(ucx),
                                                   .local = all}));
    }
    listen();
  }
};

class SimulatedWorld final : public MessagesWorld {
 public:
  SimulatedWorld(int size, int ranks_per_node) : cluster_({.size = size, .seed = 5, .ranks_per_node = ranks_per_node}) {
    eager_bytes_max = SimulationOptions{}.eager_bytes;
    credit_bytes = SimulationOptions{}.credit_bytes;
    listeners = std::vector<Recorder>(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) at(rank).listen(&listeners[static_cast<std::size_t>(rank)]);
  }

  Messages& at(int rank) override { return cluster_.endpoint(rank); }
  const Clock& clock() override { return cluster_.clock(); }
  bool step() override {
    wake_all();
    bool moved = false;
    for (int i = 0; i < 2 * cluster_.size(); ++i) moved |= cluster_.step();
    return moved;
  }
  bool drive(const std::function<bool()>& until) override {
    wake_all();
    return until() || cluster_.run_until(until, 60s);
  }
  void settle() override {
    wake_all();
    cluster_.run_for(1s);
  }
  void kill(int rank) override {
    cluster_.inject({.kind = Fault::Kind::kill_rank, .a = rank, .at = cluster_.elapsed()});
    cluster_.run_for(1us);
  }

 private:
  void wake_all() {
    for (int rank = 0; rank < cluster_.size(); ++rank) cluster_.wake(rank);
  }

  SimulatedCluster cluster_;
};

constexpr std::size_t margin_bytes = 64;
constexpr auto margin_value = std::byte{0x5A};

// Sanitizers make every step dear: noise, eight bytes at a time, which then repeats itself. The period is a prime, so that fragments
// that changed places, or came twice, are noticed.
void write_pattern(std::span<std::byte> bytes, std::uint64_t seed) {
  constexpr std::size_t period = 8191;
  std::uint64_t word = scramble(seed + 1);
  const std::size_t noise = std::min(period, bytes.size());
  for (std::size_t i = 0; i < noise; i += sizeof word) {
    word = scramble(word + i);
    std::memcpy(bytes.data() + i, &word, std::min(sizeof word, noise - i));
  }
  for (std::size_t i = period; i < bytes.size(); i += period) {
    std::memcpy(bytes.data() + i, bytes.data(), std::min(period, bytes.size() - i));
  }
}

}  // namespace

std::vector<std::unique_ptr<link::TcpLink>> make_tcp_links(int size, const wire::Address& address,
                                                           const link::TcpOptions& options) {
  std::vector<wire::Listener> listeners;
  std::vector<wire::Address> table;
  for (int rank = 0; rank < size; ++rank) {
    table.push_back(listeners.emplace_back(link::open_listener(address)).address());
  }
  const wire::Secret secret = wire::make_secret();
  std::vector<std::unique_ptr<link::TcpLink>> links;
  for (int rank = 0; rank < size; ++rank) {
    links.push_back(
        std::make_unique<link::TcpLink>(link::TcpSetup{.rank = rank,
                                                       .listener = std::move(listeners[static_cast<std::size_t>(rank)]),
                                                       .table = table,
                                                       .secret = secret,
                                                       .clock = steady_clock(),
                                                       .world = 77,
                                                       .options = options}));
  }
  return links;
}

std::vector<std::unique_ptr<Messages>> make_ring_endpoints(int size, const RingWorldOptions& options) {
  std::vector<std::shared_ptr<shm::Arena>> arenas = options.arenas;
  std::vector<shm::ArenaAddress> addresses;
  std::vector<std::uint64_t> control_blocks;
  for (int rank = 0; rank < size; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (index == arenas.size()) arenas.push_back(std::make_shared<shm::Arena>(shm::ArenaOptions{.bytes = 64 << 20}));
    addresses.push_back(arenas[index]->address());
    control_blocks.push_back(link::lay_out_control_block(*arenas[index], size));
  }
  auto networks = make_tcp_links(size, wire::Address::loopback(), small_tcp);
  std::vector<std::unique_ptr<Messages>> endpoints;
  for (int rank = 0; rank < size; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    std::vector<std::uint64_t> reached = control_blocks;
    std::vector<bool> local;
    for (int peer = 0; peer < size; ++peer) {
      local.push_back(peer / options.ranks_per_host == rank / options.ranks_per_host);
      if (!local.back()) reached[static_cast<std::size_t>(peer)] = link::no_control_block_offset;
    }
    auto ring = std::make_unique<link::RingLink>(
        link::RingSetup{.local_peers = std::make_shared<shm::LocalPeers>(arenas[index], rank, addresses),
                        .control_blocks = std::move(reached),
                        .options = options.ring});
    endpoints.push_back(std::make_unique<Messages>(MessagesSetup{.rank = rank,
                                                                 .size = size,
                                                                 .clock = steady_clock(),
                                                                 .network = std::move(networks[index]),
                                                                 .local_link = std::move(ring),
                                                                 .local = std::move(local)}));
  }
  return endpoints;
}

std::vector<WorldKind> all_world_kinds() {
  std::vector<WorldKind> kinds{
      {"tcp_ipv4",
       [](int size) -> std::unique_ptr<MessagesWorld> {
         return std::make_unique<TcpWorld>(size, wire::Address::loopback());
       }},
      {"tcp_ipv6",
       [](int size) -> std::unique_ptr<MessagesWorld> {
         return std::make_unique<TcpWorld>(size, wire::Address::loopback_v6());
       }},
      {"tls",
       [](int size) -> std::unique_ptr<MessagesWorld> {
         return std::make_unique<TcpWorld>(size, wire::Address::loopback(), wire::Encryption::tls);
       }},
      {"rings",
       [](int size) -> std::unique_ptr<MessagesWorld> {
         return std::make_unique<RingWorld>(size, RingWorldOptions{.ring = small_ring});
       }},
      {"rings_without_cross_memory",
       [](int size) -> std::unique_ptr<MessagesWorld> {
         link::RingOptions options = small_ring;
         options.cross_memory = false;
         return std::make_unique<RingWorld>(size, RingWorldOptions{.ring = options});
       }},
      {"rings_with_cells",
       [](int size) -> std::unique_ptr<MessagesWorld> {
         link::RingOptions options = small_ring;
         options.cells = 7;
         options.bulk_cells = 4;
         options.cell_bytes = 1024;
         options.cross_memory = false;
         return std::make_unique<RingWorld>(size, RingWorldOptions{.ring = options});
       }},
      {"hosts_of_two_ranks",
       [](int size) -> std::unique_ptr<MessagesWorld> {
         return std::make_unique<RingWorld>(size, RingWorldOptions{.ring = small_ring, .ranks_per_host = 2});
       }},
      {"queues_of_the_example",
       [](int size) -> std::unique_ptr<MessagesWorld> { return std::make_unique<QueueWorld>(size); }},
      {"simulated",
       [](int size) -> std::unique_ptr<MessagesWorld> { return std::make_unique<SimulatedWorld>(size, 1); }},
      {"simulated_reading_memory",
       [](int size) -> std::unique_ptr<MessagesWorld> { return std::make_unique<SimulatedWorld>(size, 2); }},
  };
  if (!link::find_ucx().problem.empty()) return kinds;
  kinds.push_back(
      {"ucx_tcp", [](int size) -> std::unique_ptr<MessagesWorld> { return std::make_unique<UcxWorld>(size); }});
  return kinds;
}

Parcel::Parcel(int peer, std::uint32_t tag, std::int64_t bytes)
    : transfer(std::make_unique<Transfer>()),
      memory_(static_cast<std::size_t>(bytes) + 2 * margin_bytes, margin_value) {
  transfer->peer = peer;
  transfer->envelope.group = 3;
  transfer->envelope.epoch = 2;
  transfer->envelope.tag = tag;
  transfer->envelope.channel = point_to_point_channel;
  transfer->envelope.bytes = bytes;
}

Parcel Parcel::to(int peer, std::uint32_t tag, std::int64_t bytes, std::uint64_t seed) {
  Parcel parcel(peer, tag, bytes);
  parcel.transfer->from = parcel.memory_.data() + margin_bytes;
  write_pattern(std::span(parcel.memory_).subspan(margin_bytes, static_cast<std::size_t>(bytes)), seed);
  return parcel;
}

Parcel Parcel::from(int peer, std::uint32_t tag, std::int64_t bytes) {
  Parcel parcel(peer, tag, bytes);
  parcel.transfer->to = parcel.memory_.data() + margin_bytes;
  parcel.fill(std::byte{0});
  return parcel;
}

Parcel& Parcel::of_call(std::uint64_t sequence, std::uint32_t phase) {
  transfer->envelope.channel = collective_channel;
  transfer->envelope.signature.sequence = sequence;
  transfer->envelope.phase = phase;
  return *this;
}

bool Parcel::holds(std::uint64_t seed) const {
  std::vector<std::byte> expected(memory_.size() - 2 * margin_bytes);
  write_pattern(expected, seed);
  const bool is_right =
      expected.empty() || std::memcmp(expected.data(), memory_.data() + margin_bytes, expected.size()) == 0;
  return is_right && margins_are_whole();
}

bool Parcel::is_all(std::byte value) const {
  const std::byte* bytes = memory_.data() + margin_bytes;
  const std::size_t count = memory_.size() - 2 * margin_bytes;
  // Each byte is like the one after it.
  return margins_are_whole() && (count == 0 || (bytes[0] == value && std::memcmp(bytes, bytes + 1, count - 1) == 0));
}

void Parcel::fill(std::byte value) { std::fill(memory_.begin() + margin_bytes, memory_.end() - margin_bytes, value); }

bool Parcel::margins_are_whole() const {
  const auto whole = [](std::byte byte) { return byte == margin_value; };
  return std::all_of(memory_.begin(), memory_.begin() + margin_bytes, whole) &&
         std::all_of(memory_.end() - margin_bytes, memory_.end(), whole);
}

}  // namespace tutti::messages
