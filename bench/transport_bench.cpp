// transport_bench.cpp: what a transport reaches between two processes of one machine: latency and bandwidth.
// SPDX-License-Identifier: Apache-2.0
//
//   transport_bench tcp [--streams 2] [--eager BYTES] [--fragment BYTES] [--buffer BYTES] [--congestion cubic] [--no-checksum]
//   transport_bench shm [--eager BYTES] [--ring BYTES] [--chunk BYTES] [--get BYTES] [--no-cross-memory]
//   transport_bench ucx [--transports tcp] [--eager BYTES] [--fragment BYTES] [--in-flight BYTES]
//
// Three patterns: ping-pong (half of the round trip), stream (one way, several messages in flight), exchange (both ways at
// once, as a step of a ring does it). Buffers change with every message. The median of some repeats; one JSON object per
// line.
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "link/ring_link.hpp"
#include "link/tcp_link.hpp"
#include "link/ucx.hpp"
#include "messages/matching_queue.hpp"
#include "messages/messages.hpp"

namespace {

using namespace tutti;
using namespace std::chrono_literals;

struct Silent final : TransportListener {
  Verdict arrived(int, const Envelope&) override { return Verdict::keep; }
  void control(int, std::span<const std::byte>) override {}
  void lost(int peer, std::string_view reason) override { throw Error(fmt::format("lost rank {}: {}", peer, reason)); }
};

// One of the two ranks.
class Bench {
 public:
  Bench(int rank, Transport& transport) : rank_(rank), transport_(transport) {}

  struct Slot {
    Transfer transfer;
    std::vector<std::byte> memory;
  };

  void prepare(std::int64_t bytes, std::size_t depth) {
    for (auto* slots : {&out_, &in_}) {
      slots->resize(depth);
      for (Slot& slot : *slots) slot.memory.assign(static_cast<std::size_t>(bytes) + 1, std::byte{1});
    }
  }
  void send(std::size_t slot) { start(out_[slot], &Transport::send); }
  void recv(std::size_t slot) { start(in_[slot], &Transport::recv); }
  void finish(const Transfer& transfer) {
    for (int idle = 0; transfer.state == Transfer::State::pending;) {
      idle = transport_.poll() ? 0 : idle + 1;
      if (idle > 200) sched_yield();
    }
    if (transfer.state != Transfer::State::done) throw Error(transfer.error);
  }
  void finish_send(std::size_t slot) { finish(out_[slot].transfer); }
  void finish_recv(std::size_t slot) { finish(in_[slot].transfer); }

  // Each returns seconds per message.
  double ping_pong(int rounds) {
    const TimePoint start = steady_clock().now();
    for (int i = 0; i < rounds; ++i) {
      if (rank_ == 0) send(0);
      recv(0);
      finish_recv(0);
      if (rank_ == 1) send(0);
      finish_send(0);
    }
    return since(start) / (2.0 * rounds);
  }
  double stream(int rounds) {
    const TimePoint start = steady_clock().now();
    const std::size_t depth = out_.size();
    for (std::size_t i = 0; i < static_cast<std::size_t>(rounds) + depth; ++i) {
      const std::size_t slot = i % depth;
      if (i >= depth) rank_ == 0 ? finish_send(slot) : finish_recv(slot);
      if (i < static_cast<std::size_t>(rounds)) rank_ == 0 ? send(slot) : recv(slot);
    }
    meet();
    return since(start) / rounds;
  }
  double exchange(int rounds) {
    const TimePoint start = steady_clock().now();
    for (int i = 0; i < rounds; ++i) {
      recv(0);
      send(0);
      finish_recv(0);
      finish_send(0);
    }
    return since(start) / rounds;
  }

 private:
  void start(Slot& slot, void (Transport::*verb)(Transfer&)) {
    slot.transfer.envelope.channel = messages::point_to_point_channel;
    slot.transfer.envelope.bytes = static_cast<std::int64_t>(slot.memory.size()) - 1;
    slot.transfer.peer = 1 - rank_;
    slot.memory[0] = static_cast<std::byte>(++changes_);
    slot.transfer.from = slot.transfer.to = slot.memory.data();
    (transport_.*verb)(slot.transfer);
  }
  void meet() {
    std::byte in{}, out{};
    Transfer receive, send;
    for (Transfer* transfer : {&receive, &send}) {
      transfer->envelope.tag = 1;
      transfer->envelope.channel = messages::point_to_point_channel;
      transfer->envelope.bytes = 1;
      transfer->peer = 1 - rank_;
    }
    receive.to = &in;
    send.from = &out;
    transport_.recv(receive);
    transport_.send(send);
    finish(receive);
    finish(send);
  }
  static double since(TimePoint start) { return std::chrono::duration<double>(steady_clock().now() - start).count(); }

  int rank_;
  Transport& transport_;
  std::vector<Slot> out_, in_;
  unsigned changes_ = 0;
};

void measure(int rank, Transport& transport, int rounds_max) {
  constexpr int repeats = 5;
  Bench bench(rank, transport);
  for (const std::int64_t bytes : {8LL, 64LL, 512LL, 4096LL, 8192LL, 16384LL, 32768LL, 65536LL, 262144LL, 1LL << 20,
                                   4LL << 20, 16LL << 20, 64LL << 20}) {
    const auto rounds = static_cast<int>(std::clamp<std::int64_t>((128LL << 20) / bytes, 2, rounds_max));
    const auto report = [&](const char* pattern, double (Bench::*run)(int)) {
      std::array<double, repeats> seconds;
      for (double& each : seconds) each = (bench.*run)(rounds);
      std::ranges::sort(seconds);
      const double median = seconds[repeats / 2];
      if (rank != 0) return;
      fmt::print("{{\"transport\": \"{}\", \"pattern\": \"{}\", \"bytes\": {}, \"us\": {:.3f}, \"GBps\": {:.3f}}}\n",
                 transport.name(), pattern, bytes, median * 1e6, static_cast<double>(bytes) / median / 1e9);
      std::fflush(stdout);
    };
    bench.prepare(bytes, 1);
    bench.ping_pong(std::max(rounds / 10, 2));
    report("ping-pong", &Bench::ping_pong);
    report("exchange", &Bench::exchange);
    bench.prepare(bytes, 4);
    report("stream", &Bench::stream);
  }
}

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) throw InvalidArgument("'" + text + "' is no number");
  return value;
}

struct Choice {
  std::string transport{};
  link::TcpOptions tcp{};
  link::RingOptions ring{};
  link::UcxOptions ucx{};
};

bool choose_for_ucx(link::UcxOptions& ucx, const std::string& word, const std::string& value) {
  if (word == "--transports") ucx.transports = value;
  else if (word == "--eager") ucx.eager_bytes_max = number(value);
  else if (word == "--fragment") ucx.fragment_bytes_max = number(value);
  else if (word == "--in-flight") ucx.in_flight_bytes_max = number(value);
  else return false;
  return true;
}

Choice parse(const std::vector<std::string>& words) {
  Choice choice;
  auto& [transport, tcp, ring, ucx] = choice;
  if (words.empty() || (words[0] != "tcp" && words[0] != "shm" && words[0] != "ucx"))
    throw InvalidArgument("which transport, tcp, shm or ucx?");
  transport = words[0];
  const bool shared = transport == "shm";
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--no-checksum" || word == "--no-cross-memory") {
      (shared ? ring.cross_memory : tcp.payload_checksums) = false;
      continue;
    }
    if (i + 1 == words.size()) throw InvalidArgument("unknown option, or no value for it: " + word);
    const std::string& value = words[++i];
    if (transport == "ucx" && choose_for_ucx(ucx, word, value)) continue;
    if (word == "--eager") (shared ? ring.eager_bytes_max : tcp.eager_bytes_max) = number(value);
    else if (word == "--ring") ring.ring_bytes = static_cast<std::uint64_t>(number(value));
    else if (word == "--chunk") ring.chunk_bytes = number(value);
    else if (word == "--get") ring.get_bytes_per_poll = number(value);
    else if (word == "--streams") tcp.streams = static_cast<int>(number(value));
    else if (word == "--fragment") tcp.fragment_bytes_max = number(value);
    else if (word == "--buffer")
      tcp.socket.send_buffer_bytes = tcp.socket.receive_buffer_bytes = static_cast<int>(number(value));
    else if (word == "--congestion") tcp.socket.congestion_control = value;
    else throw InvalidArgument("unknown option: " + word);
  }
  return choice;
}

// What one process has to know of the other's arena, through a socket between the two.
struct Place {
  char address[512] = {};
  std::uint64_t control_block = 0;
};

std::unique_ptr<Link> make_shared(int rank, int socket, const link::RingOptions& options) {
  const auto arena = std::make_shared<shm::Arena>(shm::ArenaOptions{.bytes = 1 << 30, .ranks = 2});
  std::array<Place, 2> places;
  Place& own = places[static_cast<std::size_t>(rank)];
  arena->address().to_text().copy(own.address, sizeof own.address - 1);
  own.control_block = link::lay_out_control_block(*arena, 2);
  Place& other = places[static_cast<std::size_t>(1 - rank)];
  if (write(socket, &own, sizeof own) != sizeof own || read(socket, &other, sizeof other) != sizeof other) {
    throw Error("the other process is gone");
  }
  std::vector<shm::ArenaAddress> addresses;
  for (const Place& place : places) addresses.push_back(shm::ArenaAddress::from_text(place.address));
  auto local_peers = std::make_shared<shm::LocalPeers>(arena, rank, addresses);
  if (!local_peers->reaches(1 - rank)) throw Error("no shared memory: " + local_peers->why_not(1 - rank));
  return std::make_unique<link::RingLink>(
      link::RingSetup{.local_peers = std::move(local_peers),
                      .control_blocks = {places[0].control_block, places[1].control_block},
                      .options = options});
}

std::unique_ptr<Link> make_ucx(int rank, int socket, const wire::Secret& secret, const link::UcxOptions& options) {
  link::UcxSetup setup{.worker = link::open_ucx(options),
                       .rank = rank,
                       .on_this_host = {true, true},
                       .secret = secret,
                       .world = 1,
                       .options = options};
  const std::string own = setup.worker->address();
  std::array<char, 4096> other{};
  const auto bytes = static_cast<ssize_t>(own.size());
  const ssize_t got = write(socket, own.data(), own.size()) == bytes ? read(socket, other.data(), other.size()) : 0;
  if (got <= 0) throw Error("the other process is gone");
  setup.addresses.assign(2, std::string(other.data(), static_cast<std::size_t>(got)));
  setup.addresses[static_cast<std::size_t>(rank)] = own;
  return link::make_ucx_link(std::move(setup));
}

void run_rank(int rank, std::unique_ptr<Transport> transport, int rounds_max) {
  Silent silent;
  transport->listen(&silent);
  measure(rank, *transport, rounds_max);
  transport->close(steady_clock().now() + 5s);
}

int run(const std::vector<std::string>& words) {
  const Choice choice = parse(words);
  std::vector<wire::Listener> listening;
  std::vector<wire::Address> table;
  for (int rank = 0; rank < 2; ++rank) {
    table.push_back(listening.emplace_back(link::open_listener(wire::Address::loopback(), choice.tcp)).address());
  }
  const wire::Secret secret = wire::make_secret();
  int sockets[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) throw Error("no socketpair");
  const pid_t child = fork();
  const int rank = child == 0 ? 1 : 0;
  close(sockets[1 - rank]);
  messages::MessagesSetup setup{.rank = rank, .size = 2, .clock = steady_clock()};
  setup.network =
      std::make_unique<link::TcpLink>(link::TcpSetup{.rank = rank,
                                                     .listener = std::move(listening[static_cast<std::size_t>(rank)]),
                                                     .table = table,
                                                     .secret = secret,
                                                     .clock = steady_clock(),
                                                     .world = 1,
                                                     .options = choice.tcp});
  listening.clear();
  setup.local = {true, true};
  if (choice.transport == "shm") setup.local_link = make_shared(rank, sockets[rank], choice.ring);
  if (choice.transport == "ucx") setup.local_link = make_ucx(rank, sockets[rank], secret, choice.ucx);
  run_rank(rank, std::make_unique<messages::Messages>(std::move(setup)), choice.transport == "tcp" ? 600 : 20'000);
  if (child == 0) return 0;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run({words + 1, words + count});
  } catch (const std::exception& error) {
    fmt::print(stderr, "transport_bench: {}\n", error.what());
    return 1;
  }
}
