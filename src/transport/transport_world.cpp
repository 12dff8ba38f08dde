// transport_world.cpp: worlds over tcp (IPv4 and IPv6) and simulated, and parcels with known content.
// SPDX-License-Identifier: Apache-2.0
#include "transport/transport_world.hpp"

#include <algorithm>
#include <chrono>
#include <deque>

#include "base/hash.hpp"
#include "transport/simulated.hpp"
#include "transport/tcp.hpp"

namespace tutti::transport {

namespace {

using namespace std::chrono_literals;

// A test that fails waits this long; sanitizers on a busy machine need much.
constexpr Duration patience = 30s;

class TcpWorld final : public TransportWorld {
 public:
  TcpWorld(int size, const wire::Address& address) {
    // Small limits, so that small tests reach every path.
    const TcpOptions options{.streams = 3, .eager_bytes_max = 4096, .credit_bytes = 64 << 10, .chunk_bytes = 50'000};
    eager_bytes_max = options.eager_bytes_max;
    credit_bytes = options.credit_bytes;
    std::vector<wire::Listener> doors;
    std::vector<wire::Address> table;
    for (int rank = 0; rank < size; ++rank) table.push_back(doors.emplace_back(open_listener(address)).address());
    const wire::Secret secret = wire::make_secret();
    listeners = std::vector<Recorder>(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      endpoints_.push_back(std::make_unique<TcpTransport>(TcpSetup{.rank = rank,
                                                                   .listener = std::move(doors[index]),
                                                                   .table = table,
                                                                   .secret = secret,
                                                                   .clock = steady_clock(),
                                                                   .world = 77,
                                                                   .options = options}));
      endpoints_.back()->listen(&listeners[index]);
    }
  }

  Transport& at(int rank) override { return *endpoints_[static_cast<std::size_t>(rank)]; }
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
    for (TimePoint quiet_since = clock().now(); clock().now() - quiet_since < 12ms;) {
      if (step()) quiet_since = clock().now();
      rest(1ms);
    }
  }

  void kill(int rank) override { endpoints_[static_cast<std::size_t>(rank)].reset(); }
  std::int64_t held_bytes(int rank) override {
    return endpoints_[static_cast<std::size_t>(rank)]->statistics().held_bytes;
  }

 private:
  void rest(Duration duration) {
    const auto living = std::find_if(endpoints_.begin(), endpoints_.end(), [](const auto& e) { return e != nullptr; });
    (*living)->wait(clock().now() + duration, Transport::Events::all);
  }

  std::vector<std::unique_ptr<TcpTransport>> endpoints_;
};

class SimulatedWorld final : public TransportWorld {
 public:
  explicit SimulatedWorld(int size) : cluster_(options_of(size)) {
    eager_bytes_max = options_of(size).eager_bytes;
    credit_bytes = options_of(size).credit_bytes;
    listeners = std::vector<Recorder>(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) at(rank).listen(&listeners[static_cast<std::size_t>(rank)]);
  }

  Transport& at(int rank) override { return cluster_.endpoint(rank); }
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
  std::int64_t held_bytes(int rank) override { return cluster_.endpoint(rank).unexpected_bytes(); }

 private:
  static SimulationOptions options_of(int size) { return {.size = size, .seed = 5}; }
  void wake_all() {
    for (int rank = 0; rank < cluster_.size(); ++rank) cluster_.wake(rank);
  }

  SimulatedCluster cluster_;
};

constexpr std::size_t margin_bytes = 64;
constexpr auto margin_value = std::byte{0x5A};

// Eight bytes at a time, because sanitizers make every step dear.
void write_pattern(std::span<std::byte> bytes, std::uint64_t seed) {
  std::uint64_t word = scramble(seed + 1);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % 8 == 0) word = scramble(word + i);
    bytes[i] = static_cast<std::byte>(word >> (8 * (i % 8)));
  }
}

}  // namespace

std::vector<WorldKind> all_world_kinds() {
  return {
      {"tcp_ipv4",
       [](int size) -> std::unique_ptr<TransportWorld> {
         return std::make_unique<TcpWorld>(size, wire::Address::loopback());
       }},
      {"tcp_ipv6",
       [](int size) -> std::unique_ptr<TransportWorld> {
         return std::make_unique<TcpWorld>(size, wire::Address::loopback_v6());
       }},
      {"simulated", [](int size) -> std::unique_ptr<TransportWorld> { return std::make_unique<SimulatedWorld>(size); }},
  };
}

Parcel::Parcel(int peer, std::uint32_t tag, std::int64_t bytes)
    : transfer(std::make_unique<Transfer>()),
      memory_(static_cast<std::size_t>(bytes) + 2 * margin_bytes, margin_value) {
  transfer->peer = peer;
  transfer->envelope.group = 3;
  transfer->envelope.epoch = 2;
  transfer->envelope.tag = tag;
  transfer->envelope.lane = point_to_point_lane;
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
  transfer->envelope.lane = collective_lane;
  transfer->envelope.signature.sequence = sequence;
  transfer->envelope.phase = phase;
  return *this;
}

bool Parcel::holds(std::uint64_t seed) const {
  std::vector<std::byte> expected(memory_.size() - 2 * margin_bytes);
  write_pattern(expected, seed);
  return std::equal(expected.begin(), expected.end(), memory_.begin() + margin_bytes) && margins_are_whole();
}

bool Parcel::is_all(std::byte value) const {
  return margins_are_whole() && std::all_of(memory_.begin() + margin_bytes, memory_.end() - margin_bytes,
                                            [value](std::byte byte) { return byte == value; });
}

void Parcel::fill(std::byte value) { std::fill(memory_.begin() + margin_bytes, memory_.end() - margin_bytes, value); }

bool Parcel::margins_are_whole() const {
  const auto whole = [](std::byte byte) { return byte == margin_value; };
  return std::all_of(memory_.begin(), memory_.begin() + margin_bytes, whole) &&
         std::all_of(memory_.end() - margin_bytes, memory_.end(), whole);
}

}  // namespace tutti::transport
