// messages_over_tcp_test.cpp: what only sockets can get wrong: unauthenticated connections, wrong secrets, damaged bytes, threads, forks.
// SPDX-License-Identifier: Apache-2.0
#include "link/tcp_link.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include <tutti/error.hpp>

#include "base/random.hpp"
#include "tests/support/messages_world.hpp"

namespace tutti::messages {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

wire::Secret secret_of(int value) {
  std::array<std::byte, wire::Secret::size_bytes> bytes;
  bytes.fill(static_cast<std::byte>(value));
  return wire::Secret(bytes);
}

struct PairOptions {
  int second_secret = 1;
  std::uint64_t second_world = 1;
  std::uint16_t relay_port = 0;  // where rank 0 believes rank 1 to be
  link::TcpOptions tcp{};
  Log log{};
};

// Two ranks over 127.0.0.1.
struct Pair {
  explicit Pair(const PairOptions& options = {}) {
    std::vector<wire::Listener> listeners_of;
    for (int rank = 0; rank < 2; ++rank)
      table.push_back(listeners_of.emplace_back(link::open_listener(wire::Address::loopback())).address());
    for (int rank = 0; rank < 2; ++rank) {
      std::vector<wire::Address> seen = table;
      if (rank == 0 && options.relay_port != 0) seen[1] = seen[1].with_port(options.relay_port);
      auto tcp = std::make_unique<link::TcpLink>(
          link::TcpSetup{.rank = rank,
                         .listener = std::move(listeners_of[static_cast<std::size_t>(rank)]),
                         .table = seen,
                         .secret = secret_of(rank == 0 ? 1 : options.second_secret),
                         .clock = steady_clock(),
                         .world = rank == 0 ? 1 : options.second_world,
                         .options = options.tcp,
                         .log = options.log});
      links.push_back(tcp.get());
      ends.push_back(std::make_unique<Messages>(
          MessagesSetup{.rank = rank, .size = 2, .clock = steady_clock(), .network = std::move(tcp)}));
      ends.back()->listen(&listeners[rank]);
    }
  }
  template <class Condition>
  bool drive(Condition condition) {
    const TimePoint deadline = steady_clock().now() + 30s;
    while (!condition() && steady_clock().now() < deadline) {
      bool moved = false;
      for (const auto& end : ends) moved |= end->poll();
      if (!moved) ends[0]->wait(steady_clock().now() + 1ms, Transport::Events::all);
    }
    return condition();
  }
  bool exchange(std::int64_t bytes) {
    Parcel out = Parcel::to(1, 1, bytes, 5), in = Parcel::from(0, 1, bytes);
    ends[0]->send(*out.transfer);
    ends[1]->recv(*in.transfer);
    return drive([&] { return !in.is_pending() && !out.is_pending(); }) && in.is_done() && in.holds(5);
  }

  std::vector<wire::Address> table;
  Recorder listeners[2];
  std::vector<link::TcpLink*> links;  // the ends own them
  std::vector<std::unique_ptr<Messages>> ends;
};

TEST(MessagesOverTcp, unauthenticated_connections_and_noise_do_no_harm) {
  Pair pair({.tcp = {.handshake_timeout = 50ms, .half_open_max = 8}});
  Random random(3);
  std::vector<UniqueFd> unauthenticated;
  for (int i = 0; i < 40; ++i) {
    UniqueFd accepted = wire::connect(pair.table[1], steady_clock().now() + 5s);
    std::vector<std::byte> noise(random.below(3) * random.below(5000));
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
    wire::write_some(accepted.get(), noise);
    if (i % 2 == 0) unauthenticated.push_back(std::move(accepted));  // the others hang up at once
    EXPECT_LE(pair.links[1]->statistics().half_open_count, 8u);
    pair.drive([] { return true; });
    pair.ends[1]->poll();
  }
  EXPECT_TRUE(pair.exchange(100'000)) << "ranks get through the crowd";
  EXPECT_TRUE(pair.drive([&] { return pair.links[1]->statistics().turned_away_count == 40; }));
  EXPECT_EQ(pair.links[1]->statistics().half_open_count, 0u);
  EXPECT_TRUE(pair.listeners[0].losses.empty() && pair.listeners[1].losses.empty());
}

TEST(MessagesOverTcp, a_rank_that_gets_no_time_to_answer_in_the_handshake_connects_anew) {
  Pair pair({.tcp = {.handshake_timeout = 50ms}});
  Parcel out = Parcel::to(1, 1, 10, 5), in = Parcel::from(0, 1, 10);
  pair.ends[0]->send(*out.transfer);
  pair.ends[1]->recv(*in.transfer);
  // Rank 0 greets. The other one answers, and waits for rank 0's proof as long as it waits for anybody.
  for (int i = 0; i < 1000; ++i) pair.ends[0]->poll();
  const TimePoint deadline = steady_clock().now() + 30s;
  while (pair.links[1]->statistics().turned_away_count == 0 && steady_clock().now() < deadline) pair.ends[1]->poll();
  EXPECT_TRUE(pair.drive([&] { return !in.is_pending() && !out.is_pending(); }));
  EXPECT_TRUE(in.is_done() && in.holds(5));
  EXPECT_TRUE(pair.listeners[0].losses.empty() && pair.listeners[1].losses.empty());
}

TEST(MessagesOverTcp, unauthenticated_connections_leave_a_program_with_few_descriptors_most_of_them) {
  Pair pair;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit tight{.rlim_cur = 256, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  std::vector<UniqueFd> unauthenticated;
  for (int i = 0; i < 60; ++i) unauthenticated.push_back(wire::connect(pair.table[1], steady_clock().now() + 5s));
  EXPECT_TRUE(pair.drive([&] { return pair.links[1]->statistics().half_open_count == 32; })) << "an eighth";
  for (int i = 0; i < 10; ++i) pair.ends[1]->poll();
  EXPECT_EQ(pair.links[1]->statistics().half_open_count, 32u);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

// In a child, because a hard limit cannot be raised again; _exit, because destructors under sanitizers want descriptors.
TEST(MessagesOverTcp, a_rank_that_is_out_of_descriptors_says_so) {
  const auto in_child = [] {
    std::string said;
    Pair pair({.log = Log(Log::Level::warn, "tutti[1]", [&](std::string_view line) { said += line; })});
    const UniqueFd accepted = wire::connect(pair.table[1], steady_clock().now() + 5s);
    const UniqueFd room(dup(accepted.get()));
    const auto count = static_cast<rlim_t>(room.get()) + 1;
    const rlimit tight{.rlim_cur = count, .rlim_max = count};
    const bool set = setrlimit(RLIMIT_NOFILE, &tight) == 0;
    const bool named = pair.drive([&] { return said.find("is out of file descriptors") != std::string::npos; });
    _exit(set && named ? 0 : 1);
  };
  EXPECT_EXIT(in_child(), testing::ExitedWithCode(0), "");
}

TEST(MessagesOverTcp, a_rank_with_another_secret_or_world_is_not_talked_to) {
  for (const PairOptions& options : {PairOptions{.second_secret = 2}, PairOptions{.second_world = 9}}) {
    Pair pair(options);
    Parcel out = Parcel::to(1, 1, 10);
    pair.ends[0]->send(*out.transfer);
    ASSERT_TRUE(pair.drive([&] { return pair.listeners[0].losses.size() == 1; }));
    EXPECT_EQ(pair.listeners[0].losses[0].first, 1);
    EXPECT_TRUE(pair.listeners[1].losses.empty()) << "a connection that proves nothing is no peer";
    EXPECT_EQ(pair.ends[1]->unexpected_count(), 0u);
    EXPECT_TRUE(out.is_done() || out.has_failed());
  }
}

TEST(MessagesOverTcp, a_rank_that_nobody_is_behind_is_lost) {
  Pair pair;
  pair.ends.pop_back();
  pair.ends[0]->attach(1);
  ASSERT_TRUE(pair.drive([&] { return pair.listeners[0].losses.size() == 1; }));
  EXPECT_THAT(pair.listeners[0].losses[0].second, HasSubstr("refused"));
}

// Passes bytes on both ways between rank 0 and rank 1, and flips one bit of what rank 0 says.
class Relay {
 public:
  explicit Relay(std::size_t damage_at) : damage_at_(damage_at) {}
  [[nodiscard]] std::uint16_t port() const { return listener_socket_.address().port(); }
  void aim(const wire::Address& target) { target_ = target; }
  void pump() {
    while (auto accepted = listener_socket_.accept()) {
      lines_.push_back({std::move(accepted->socket), wire::connect(target_, steady_clock().now() + 5s)});
    }
    for (Line& line : lines_) {
      pass(line.near.get(), line.far.get(), &line.passed);
      pass(line.far.get(), line.near.get(), nullptr);
    }
  }

 private:
  struct Line {
    UniqueFd near, far;
    std::size_t passed = 0;
  };
  void pass(int from, int to, std::size_t* passed) {
    std::array<std::byte, 4096> buffer;
    const wire::Transfer read = wire::read_some(from, buffer);
    if (passed != nullptr && *passed <= damage_at_ && damage_at_ < *passed + read.bytes)
      buffer[damage_at_ - *passed] ^= std::byte{4};
    if (passed != nullptr) *passed += read.bytes;
    std::span<const std::byte> rest(buffer.data(), read.bytes);
    while (!rest.empty()) {
      const wire::Transfer written = wire::write_some(to, rest);
      if (written.closed()) return;
      rest = rest.subspan(written.bytes);
    }
  }

  wire::Listener listener_socket_{wire::Address::loopback()};
  wire::Address target_;
  std::vector<Line> lines_;
  std::size_t damage_at_;
};

TEST(MessagesOverTcp, a_damaged_byte_loses_the_peer_and_never_reaches_the_receiver) {
  // The first frame follows 141 bytes of handshake: in its head, and twice in its payload.
  for (const std::size_t position : {std::size_t{150}, std::size_t{300}, std::size_t{2000}}) {
    Relay relay(position);
    Pair pair({.relay_port = relay.port()});
    relay.aim(pair.table[1]);
    Parcel out = Parcel::to(1, 1, 3000, 5), in = Parcel::from(0, 1, 3000);
    pair.ends[1]->recv(*in.transfer);
    pair.ends[0]->send(*out.transfer);
    ASSERT_TRUE(pair.drive([&] {
      relay.pump();
      return !pair.listeners[1].losses.empty();
    })) << position;
    EXPECT_TRUE(in.has_failed());
    EXPECT_THAT(pair.listeners[1].losses[0].second, HasSubstr("checksum")) << position;
  }
}

TEST(MessagesOverTcp, a_byte_that_is_changed_under_tls_ends_the_connection_and_never_reaches_the_receiver) {
  // In the first message of TLS, in its last one, and in what was sealed: the message is longer than its records' heads.
  for (const std::size_t position : {std::size_t{200}, std::size_t{480}, std::size_t{1000}, std::size_t{3000}}) {
    Relay relay(position);
    Pair pair({.relay_port = relay.port(), .tcp = {.encryption = wire::Encryption::tls}});
    relay.aim(pair.table[1]);
    Parcel out = Parcel::to(1, 1, 3000, 5), in = Parcel::from(0, 1, 3000);
    pair.ends[1]->recv(*in.transfer);
    pair.ends[0]->send(*out.transfer);
    const auto losses = [&] {
      auto all = pair.listeners[0].losses;
      all.insert(all.end(), pair.listeners[1].losses.begin(), pair.listeners[1].losses.end());
      return all;
    };
    ASSERT_TRUE(pair.drive([&] {
      relay.pump();
      return !losses().empty();
    })) << position;
    EXPECT_FALSE(in.is_done());
    EXPECT_THAT(losses()[0].second, HasSubstr("TLS: ")) << position;
  }
}

TEST(MessagesOverTcp, sends_messages_to_itself) {
  Pair pair;
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{100}, std::int64_t{1'000'000}}) {
    for (const bool expected : {true, false}) {
      Parcel out = Parcel::to(0, 1, bytes, 6), in = Parcel::from(0, 1, bytes);
      if (expected) pair.ends[0]->recv(*in.transfer);
      pair.ends[0]->send(*out.transfer);
      pair.ends[0]->poll();
      if (!expected) pair.ends[0]->recv(*in.transfer);
      EXPECT_TRUE(in.is_done() && out.is_done() && in.holds(6)) << bytes;
    }
  }
  Parcel taken_back = Parcel::to(0, 1, 1'000'000);
  pair.ends[0]->send(*taken_back.transfer);
  pair.ends[0]->poll();
  EXPECT_TRUE(taken_back.is_pending());
  pair.ends[0]->cancel(*taken_back.transfer);
  EXPECT_EQ(pair.ends[0]->unexpected_count(), 0u);
  pair.ends[0]->post(0, {});
  pair.ends[0]->poll();
  EXPECT_EQ(pair.listeners[0].controls.size(), 1u);
  EXPECT_EQ(pair.links[0]->statistics().connection_count, 0u);
}

TEST(MessagesOverTcp, wake_ends_a_wait_also_one_that_has_not_begun) {
  Pair pair;
  const auto waited = [&](Transport::Events events) {
    const TimePoint start = steady_clock().now();
    pair.ends[0]->wait(start + 20s, events);
    return steady_clock().now() - start < 15s;
  };
  for (const auto events : {Transport::Events::all, Transport::Events::control}) {
    pair.ends[0]->wake();
    pair.ends[0]->poll();
    EXPECT_TRUE(waited(events));
    std::thread other([&] { pair.ends[0]->wake(); });
    EXPECT_TRUE(waited(events));
    other.join();
  }
}

TEST(MessagesOverTcp, a_wait_for_control_sleeps_through_data) {
  Pair pair;
  ASSERT_TRUE(pair.exchange(10));
  while (pair.ends[0]->poll() || pair.ends[1]->poll()) {}
  Parcel out = Parcel::to(1, 2, 10);
  pair.ends[0]->send(*out.transfer);
  const TimePoint start = steady_clock().now();
  pair.ends[1]->wait(start + 30ms, Transport::Events::control);
  EXPECT_GE(steady_clock().now() - start, 30ms);
  pair.ends[1]->wait(start + 20s, Transport::Events::all);
  EXPECT_LT(steady_clock().now() - start, 15s);
  ASSERT_TRUE(pair.drive([&] { return pair.ends[1]->unexpected_count() == 1; }));
  pair.ends[0]->post(1, {});
  pair.ends[1]->wait(start + 20s, Transport::Events::control);
  EXPECT_LT(steady_clock().now() - start, 15s);
}

TEST(MessagesOverTcp, a_forked_child_that_abandons_it_leaves_the_parents_links_alone) {
  Pair pair;
  pair.ends[0]->attach(1);
  ASSERT_TRUE(pair.exchange(200'000));
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& end : pair.ends) end->abandon();
    pair.ends.clear();
    _exit(0);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(pair.exchange(200'000));
  EXPECT_TRUE(pair.listeners[0].losses.empty() && pair.listeners[1].losses.empty());
}

TEST(MessagesOverTcp, nonsense_from_the_caller_is_refused) {
  Pair pair;
  Parcel outside = Parcel::to(2, 1, 10);
  EXPECT_THROW(pair.ends[0]->send(*outside.transfer), InvalidArgument);
  EXPECT_THROW(pair.ends[0]->recv(*outside.transfer), InvalidArgument);
  EXPECT_THROW(pair.ends[0]->attach(-1), InvalidArgument);
  Parcel negative = Parcel::to(1, 1, 10);
  negative.transfer->envelope.bytes = -1;
  EXPECT_THROW(pair.ends[0]->send(*negative.transfer), InvalidArgument);
  EXPECT_THROW(pair.ends[0]->post(1, std::vector<std::byte>((64 << 10) + 1)), InvalidArgument);
  EXPECT_THROW(link::check(link::TcpOptions{.streams = 0}), InvalidArgument);
  EXPECT_THROW(link::check(link::TcpOptions{.credit_bytes = 10}), InvalidArgument);
}

// One thread per rank, each with its own endpoint, as in a program.
void exchange_all_to_all(wire::Encryption encryption) {
  constexpr int size = 4, rounds = 30;
  std::vector<wire::Listener> listeners;
  std::vector<wire::Address> table;
  for (int rank = 0; rank < size; ++rank)
    table.push_back(listeners.emplace_back(link::open_listener(wire::Address::loopback())).address());
  std::atomic<int> failures = 0;
  const auto program = [&](int rank) {
    Messages transport({.rank = rank,
                        .size = size,
                        .clock = steady_clock(),
                        .network = std::make_unique<link::TcpLink>(
                            link::TcpSetup{.rank = rank,
                                           .listener = std::move(listeners[static_cast<std::size_t>(rank)]),
                                           .table = table,
                                           .secret = secret_of(1),
                                           .clock = steady_clock(),
                                           .world = 4,
                                           .options = {.encryption = encryption}})});
    Recorder listener;
    transport.listen(&listener);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::int64_t bytes = round % 5 == 0 ? 300'000 : static_cast<std::int64_t>(round * 100);
      std::vector<Parcel> out, in;
      for (int peer = 0; peer < size; ++peer) {
        in.push_back(std::move(Parcel::from(peer, 1, bytes).of_call(round)));
        out.push_back(
            std::move(Parcel::to(peer, 1, bytes, round * size + static_cast<std::uint64_t>(rank)).of_call(round)));
        transport.recv(*in.back().transfer);
        transport.send(*out.back().transfer);
      }
      const TimePoint deadline = steady_clock().now() + 30s;
      const auto pending = [&] {
        return std::ranges::any_of(in, &Parcel::is_pending) || std::ranges::any_of(out, &Parcel::is_pending);
      };
      while (pending() && steady_clock().now() < deadline) {
        if (!transport.poll()) transport.wait(deadline, Transport::Events::all);
      }
      for (std::uint64_t peer = 0; peer < size; ++peer)
        failures += in[peer].is_done() && in[peer].holds(round * size + peer) ? 0 : 1;
    }
    transport.close(steady_clock().now() + 10s);
    failures += static_cast<int>(listener.losses.size());
  };
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back(program, rank);
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(failures, 0);
}

TEST(MessagesOverTcp, ranks_as_threads_exchange_messages_all_to_all) { exchange_all_to_all(wire::Encryption::none); }
TEST(MessagesOverTcp, ranks_as_threads_exchange_messages_all_to_all_under_tls) {
  exchange_all_to_all(wire::Encryption::tls);
}

}  // namespace
}  // namespace tutti::messages
