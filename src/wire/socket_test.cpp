// socket_test.cpp: sockets on loopback, IPv4 and IPv6.
// SPDX-License-Identifier: Apache-2.0
#include "wire/socket.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include <tutti/error.hpp>

namespace tutti::wire {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TimePoint soon(Duration wait = 5s) { return std::chrono::steady_clock::now() + wait; }

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

struct Pair {
  UniqueFd client, server;
};

Pair connected_pair(Listener& listener, const SocketOptions& options = {}) {
  UniqueFd client = connect(listener.address(), soon(), options);
  EXPECT_NE(wait_for(listener.fd(), POLLIN, soon()), 0);
  auto accepted = listener.accept();
  EXPECT_TRUE(accepted);
  EXPECT_EQ(accepted->peer, local_address(client.get()));
  return {std::move(client), std::move(accepted->socket)};
}

std::string read_all(int socket, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes && wait_for(socket, POLLIN, soon()) != 0) {
    const Transfer moved = read_some(socket, std::as_writable_bytes(std::span(text)).subspan(have));
    if (moved.closed()) break;
    have += moved.bytes;
  }
  text.resize(have);
  return text;
}

class Sockets : public testing::TestWithParam<const char*> {
 protected:
  Address address_ = Address::from_numeric(GetParam(), 0).value();
};
INSTANTIATE_TEST_SUITE_P(Families, Sockets, testing::Values("127.0.0.1", "127.0.0.2", "::1"),
                         [](const auto& row) { return "case" + std::to_string(row.index); });

TEST_P(Sockets, ListenOnExactlyTheAddressAskedForAndAFreePort) {
  const Listener listener(address_);
  EXPECT_EQ(listener.address().host(), GetParam());
  EXPECT_NE(listener.address().port(), 0);
}

TEST_P(Sockets, CarryBytesBothWaysAndThenTheEnd) {
  Listener listener(address_);
  Pair pair = connected_pair(listener);
  const iovec pieces[] = {{const_cast<char*>("hel"), 3}, {const_cast<char*>("lo"), 2}};
  EXPECT_EQ(write_some(pair.client.get(), pieces).bytes, 5u);
  EXPECT_EQ(read_all(pair.server.get(), 5), "hello");
  EXPECT_EQ(write_some(pair.server.get(), bytes_of("back")).bytes, 4u);
  EXPECT_EQ(read_all(pair.client.get(), 4), "back");

  std::byte buffer[8];
  EXPECT_EQ(read_some(pair.client.get(), buffer).status, Transfer::Status::would_block);
  EXPECT_TRUE(read_some(pair.client.get(), std::span<std::byte>()).moved()) << "an empty read is not the end";
  pair.server.reset();
  EXPECT_NE(wait_for(pair.client.get(), POLLIN, soon()), 0);
  const Transfer end = read_some(pair.client.get(), buffer);
  EXPECT_TRUE(end.closed());
  EXPECT_EQ(end.reason(), "closed by the other side");
}

TEST_P(Sockets, WritingToAClosedPeerIsAResultAndNoSignal) {
  Listener listener(address_);
  Pair pair = connected_pair(listener);
  pair.server.reset();
  Transfer moved;
  for (int i = 0; i < 1000 && !moved.closed(); ++i) moved = write_some(pair.client.get(), bytes_of("into the void"));
  EXPECT_TRUE(moved.closed());
  EXPECT_NE(moved.error, 0);
}

TEST_P(Sockets, AFullSocketWouldBlock) {
  Listener listener(address_);
  Pair pair = connected_pair(listener, {.send_buffer_bytes = 4096});
  const std::vector<std::byte> much(1 << 20);
  // The receiver's side takes some more for a while, as the kernel grows its buffer.
  Transfer moved{.status = Transfer::Status::moved};
  for (int i = 0; i < 10000 && wait_for(pair.client.get(), POLLOUT, soon(5ms)) != 0; ++i) {
    moved = write_some(pair.client.get(), much);
    ASSERT_FALSE(moved.closed());
  }
  EXPECT_EQ(write_some(pair.client.get(), much).status, Transfer::Status::would_block);
}

TEST_P(Sockets, AreClosedOnExecAndDoNotBlock) {
  Listener listener(address_);
  Pair pair = connected_pair(listener);
  for (const int socket : {listener.fd(), pair.client.get(), pair.server.get()}) {
    EXPECT_NE(fcntl(socket, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(fcntl(socket, F_GETFL) & O_NONBLOCK, 0);
  }
}

TEST(Listener, APortInUseIsNamedAndFollowedByAdvice) {
  const Listener first(Address::loopback());
  try {
    const Listener second(first.address());
    FAIL();
  } catch (const RendezvousError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr(first.address().text()), HasSubstr("port 0")));
  }
  EXPECT_THROW(Listener(Address::from_numeric("192.0.2.1", 0).value()), RendezvousError);
}

// In a child, because a hard limit cannot be raised again; _exit, because destructors under sanitizers want descriptors.
TEST(Listener, OutOfDescriptorsItDropsTheConnectionAndGoesOn) {
  const auto in_child = [] {
    Listener listener(Address::loopback());
    const UniqueFd early = connect(listener.address(), soon());
    wait_for(listener.fd(), POLLIN, soon());
    UniqueFd next(connect(listener.address(), soon()));
    UniqueFd room(dup(listener.fd()));
    const auto count = static_cast<rlim_t>(room.get()) + 1;
    const rlimit tight{.rlim_cur = count, .rlim_max = count};
    const bool set = setrlimit(RLIMIT_NOFILE, &tight) == 0;
    const bool refused = set && !listener.accept() && listener.dropped() == 2;
    next.reset();
    next = connect(listener.address(), soon());  // takes the free number
    room.reset();
    wait_for(listener.fd(), POLLIN, soon());
    _exit(refused && listener.accept() ? 0 : 1);
  };
  EXPECT_EXIT(in_child(), testing::ExitedWithCode(0), "");
}

TEST(Listener, RaisesTheSoftLimitBeforeItDropsAnybody) {
  const auto in_child = [] {
    Listener listener(Address::loopback());
    const UniqueFd early = connect(listener.address(), soon());
    wait_for(listener.fd(), POLLIN, soon());
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = static_cast<rlim_t>(early.get()) + 1;
    const bool set = setrlimit(RLIMIT_NOFILE, &limit) == 0;
    _exit(set && listener.accept() && listener.dropped() == 0 ? 0 : 1);
  };
  EXPECT_EXIT(in_child(), testing::ExitedWithCode(0), "");
}

TEST(Connect, NobodyThereIsAnErrorThatNamesTheAddressAtTheDeadline) {
  Address free_port;
  { free_port = Listener(Address::loopback()).address(); }
  try {
    (void)connect(free_port, soon(30ms));
    FAIL();
  } catch (const RendezvousError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr(free_port.text()), HasSubstr("Connection refused")));
  }
}

TEST(Connect, WaitsForAListenerThatComesLater) {
  Address address;
  { address = Listener(Address::loopback()).address(); }
  std::optional<Listener> listener;
  std::jthread late([&] {
    // The first attempt has been refused by the time this one connects to nothing.
    EXPECT_THROW((void)connect(address, soon(10ms)), RendezvousError);
    listener.emplace(address);
  });
  EXPECT_TRUE(connect(address, soon()));
}

TEST(Connecting, CanBePolled) {
  Listener listener(Address::loopback());
  Connecting connecting(listener.address());
  ASSERT_NE(wait_for(connecting.fd(), POLLOUT, soon()), 0);
  ASSERT_EQ(connecting.check(), Connecting::State::connected);
  EXPECT_TRUE(connecting.take());
}

TEST(SocketOptionsTest, AreSetOnTheSocket) {
  Listener listener(Address::loopback());
  Pair pair = connected_pair(listener, {.congestion_control = "reno", .keepalive = 3s, .user_timeout = 1500ms});
  const auto option = [&](int level, int name) {
    int value = 0;
    socklen_t bytes = sizeof value;
    EXPECT_EQ(getsockopt(pair.client.get(), level, name, &value, &bytes), 0);
    return value;
  };
  EXPECT_NE(option(IPPROTO_TCP, TCP_NODELAY), 0);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 3);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 1500);
  char name[16] = {};
  socklen_t bytes = sizeof name;
  EXPECT_EQ(getsockopt(pair.client.get(), IPPROTO_TCP, TCP_CONGESTION, name, &bytes), 0);
  EXPECT_STREQ(name, "reno");
}

TEST(SocketOptionsTest, AnUnknownCongestionControlIsTheCallersMistake) {
  Listener listener(Address::loopback());
  try {
    (void)connect(listener.address(), soon(), {.congestion_control = "warp"});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("'warp'"));
  }
}

TEST(PollTimeout, NeverWakesTooEarlyAndNeverOverflows) {
  const TimePoint now{};
  EXPECT_EQ(poll_timeout_ms(now, now), 0);
  EXPECT_EQ(poll_timeout_ms(now, now - 1s), 0);
  EXPECT_EQ(poll_timeout_ms(now, now + 1ns), 1);
  EXPECT_EQ(poll_timeout_ms(now, now + 1500us), 2);
  EXPECT_EQ(poll_timeout_ms(now, TimePoint::max()), -1);
  EXPECT_EQ(poll_timeout_ms(now, TimePoint::max() - 1ns), 2147483647);
}

}  // namespace
}  // namespace tutti::wire
