// transport_bench.cpp: what the tcp transport reaches between two processes over loopback: latency and bandwidth.
// SPDX-License-Identifier: Apache-2.0
//
//   transport_bench [--streams 2] [--eager BYTES] [--chunk BYTES] [--buffer BYTES] [--congestion cubic] [--no-checksum]
//
// Three patterns: ping-pong (half of the round trip), stream (one way, several messages in flight), exchange (both ways at
// once, as a step of a ring does it). Buffers change with every message. One JSON object per line.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "transport/mailbox.hpp"
#include "transport/tcp.hpp"

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
  Bench(int rank, transport::TcpTransport& transport) : rank_(rank), transport_(transport) {}

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
  void send(std::size_t slot) { start(out_[slot], &transport::TcpTransport::send); }
  void recv(std::size_t slot) { start(in_[slot], &transport::TcpTransport::recv); }
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
      recv(0);
      if (rank_ == 0) send(0);
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
  void start(Slot& slot, void (transport::TcpTransport::*verb)(Transfer&)) {
    slot.transfer.envelope.lane = transport::point_to_point_lane;
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
      transfer->envelope.lane = transport::point_to_point_lane;
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
  transport::TcpTransport& transport_;
  std::vector<Slot> out_, in_;
  unsigned changes_ = 0;
};

void measure(int rank, transport::TcpTransport& transport) {
  Bench bench(rank, transport);
  for (const std::int64_t bytes :
       {8LL, 512LL, 4096LL, 32768LL, 262144LL, 1LL << 20, 4LL << 20, 16LL << 20, 64LL << 20}) {
    const int rounds =
        static_cast<int>(std::clamp<std::int64_t>((512LL << 20) / std::max<std::int64_t>(bytes, 1), 8, 3000));
    const auto report = [&](const char* pattern, double seconds) {
      if (rank != 0) return;
      fmt::print("{{\"pattern\": \"{}\", \"bytes\": {}, \"us\": {:.2f}, \"GBps\": {:.3f}}}\n", pattern, bytes,
                 seconds * 1e6, static_cast<double>(bytes) / seconds / 1e9);
      std::fflush(stdout);
    };
    bench.prepare(bytes, 1);
    bench.ping_pong(std::max(rounds / 10, 2));
    report("ping-pong", bench.ping_pong(rounds));
    report("exchange", bench.exchange(rounds));
    bench.prepare(bytes, 4);
    report("stream", bench.stream(rounds));
  }
}

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) throw InvalidArgument("'" + text + "' is no number");
  return value;
}

transport::TcpOptions parse(const std::vector<std::string>& words) {
  transport::TcpOptions options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--no-checksum") {
      options.payload_checksums = false;
      continue;
    }
    if (i + 1 == words.size()) throw InvalidArgument("unknown option, or no value for it: " + word);
    const std::string& value = words[++i];
    if (word == "--streams") options.streams = static_cast<int>(number(value));
    else if (word == "--eager") options.eager_bytes_max = number(value);
    else if (word == "--chunk") options.chunk_bytes = number(value);
    else if (word == "--buffer")
      options.socket.send_buffer_bytes = options.socket.receive_buffer_bytes = static_cast<int>(number(value));
    else if (word == "--congestion") options.socket.congestion_control = value;
    else throw InvalidArgument("unknown option: " + word);
  }
  return options;
}

int run(const std::vector<std::string>& words) {
  const transport::TcpOptions options = parse(words);
  std::vector<wire::Listener> doors;
  std::vector<wire::Address> table;
  for (int rank = 0; rank < 2; ++rank) {
    table.push_back(doors.emplace_back(transport::open_listener(wire::Address::loopback(), options)).address());
  }
  const wire::Secret secret = wire::make_secret();
  const pid_t child = fork();
  const int rank = child == 0 ? 1 : 0;
  {
    transport::TcpTransport transport({.rank = rank,
                                       .listener = std::move(doors[static_cast<std::size_t>(rank)]),
                                       .table = table,
                                       .secret = secret,
                                       .clock = steady_clock(),
                                       .world = 1,
                                       .options = options});
    doors.clear();
    Silent silent;
    transport.listen(&silent);
    measure(rank, transport);
    transport.close(steady_clock().now() + 5s);
  }
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
