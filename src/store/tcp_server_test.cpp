// tcp_server_test.cpp: the tcp store's server with unauthenticated connections, and with 2 000 clients at once.
// SPDX-License-Identifier: Apache-2.0
#include "store/tcp_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <future>
#include <latch>
#include <thread>
#include <vector>

#include <tutti/error.hpp>

#include "store/protocol.hpp"
#include "store/tcp_store.hpp"
#include "wire/channel.hpp"
#include "wire/socket.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using namespace store;
using testing::HasSubstr;
using wire::Handshake;

TimePoint in(Duration wait) { return std::chrono::steady_clock::now() + wait; }
TimePoint soon() { return in(30s); }

class TcpServer : public testing::Test {
 protected:
  void start(TcpStoreServer::Options options) { server_ = std::make_unique<TcpStoreServer>(options); }
  void start() { start({.secret = secret_}); }

  wire::HostPort where() const { return {server_->address().host(), server_->address().port()}; }
  std::shared_ptr<Store> client() { return tcp_store({.server = where(), .secret = secret_, .deadline = soon()}); }
  UniqueFd unauthenticated() { return wire::connect(server_->address(), soon()); }
  wire::Channel authenticated() {
    wire::Channel channel(unauthenticated(), {.role = Handshake::Role::initiator, .secret = secret_});
    wire::open_channel(channel, "the server", soon());
    return channel;
  }

  // The server closes the connection, by the deadline.
  static bool is_closed(int socket, TimePoint deadline) {
    std::byte buffer[4096];
    while (wire::wait_for(socket, POLLIN, deadline) != 0) {
      if (wire::read_some(socket, buffer).closed()) return true;
    }
    return false;
  }

  wire::Secret secret_ = wire::make_secret();
  std::unique_ptr<TcpStoreServer> server_;
};

TEST_F(TcpServer, ListensOnlyOnTheAddressAskedFor) {
  start({.address = wire::Address::from_numeric("127.0.0.3", 0).value(), .secret = secret_});
  EXPECT_EQ(server_->address().host(), "127.0.0.3");
  client()->set("k", "v", soon());
  EXPECT_THROW((void)wire::connect(wire::Address::loopback(server_->address().port()), in(30ms)), RendezvousError);
}

TEST_F(TcpServer, TellsWhoHasTheWrongSecret) {
  start();
  try {
    (void)tcp_store({.server = where(), .secret = wire::make_secret(), .deadline = soon()});
    FAIL();
  } catch (const AuthenticationError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr(where().text()), HasSubstr("TUTTI_SECRET")));
  }
  EXPECT_EQ(client()->add("n", 1, soon()), 1) << "and goes on serving";
}

TEST_F(TcpServer, GoesOnServingThroughAPortScanAndRandomBytes) {
  start();
  const auto honest = client();
  for (int i = 0; i < 200; ++i) unauthenticated().reset();
  std::vector<UniqueFd> noisy;
  std::vector<std::byte> noise(4096);
  for (int i = 0; i < 50; ++i) {
    noisy.push_back(unauthenticated());
    wire::fill_random(noise);
    wire::write_some(noisy.back().get(), noise);
  }
  EXPECT_EQ(honest->add("n", 1, soon()), 1);
  for (const UniqueFd& socket : noisy) EXPECT_TRUE(is_closed(socket.get(), soon()));
  EXPECT_EQ(client()->add("n", 1, soon()), 2);
}

TEST_F(TcpServer, DropsThoseWhoNeverFinishTheHandshake) {
  start({.secret = secret_, .unauthenticated_timeout = 50ms});
  const auto honest = client();
  const UniqueFd silent = unauthenticated(), slow = unauthenticated();
  Handshake handshake({.role = Handshake::Role::initiator, .secret = secret_});
  wire::write_some(slow.get(), handshake.output().first(50));
  EXPECT_TRUE(is_closed(silent.get(), soon()));
  EXPECT_TRUE(is_closed(slow.get(), soon()));
  EXPECT_EQ(honest->add("n", 1, soon()), 1) << "who is known stays";
}

TEST_F(TcpServer, TheOldestUnauthenticatedConnectionMakesRoomForTheNewest) {
  start({.secret = secret_, .unauthenticated_timeout = 1h, .unauthenticated_time_min = 5ms, .unauthenticated_max = 8});
  std::vector<UniqueFd> unauthenticated_sockets;
  for (int i = 0; i < 40; ++i) unauthenticated_sockets.push_back(unauthenticated());
  EXPECT_EQ(client()->add("n", 1, soon()), 1) << "a flood of half-open handshakes keeps nobody out";
  EXPECT_TRUE(is_closed(unauthenticated_sockets.front().get(), soon()));
  EXPECT_FALSE(is_closed(unauthenticated_sockets.back().get(), in(1ms)));
}

TEST_F(TcpServer, AClientThatWasTurnedAwayBecauseItGotNoTimeToAnswerComesAgain) {
  wire::Listener listener(wire::Address::loopback());
  const wire::HostPort here{listener.address().host(), listener.address().port()};
  const auto next_client = [&] {
    wire::wait_for(listener.fd(), POLLIN, soon());
    return std::move(listener.accept().value().socket);
  };
  std::jthread server([&] {
    {
      const UniqueFd late = next_client();
      Handshake acceptor({.role = Handshake::Role::acceptor, .secret = secret_});
      std::array<std::byte, Handshake::hello_bytes> hello;
      wire::wait_for(late.get(), POLLIN, soon());
      acceptor.feed(std::span(hello).first(wire::read_some(late.get(), hello).bytes));
      wire::write_some(late.get(), acceptor.output());
    }  // its proof does not come in time
    wire::Channel again(next_client(), {.role = Handshake::Role::acceptor, .secret = secret_});
    wire::open_channel(again, "a client", soon());
  });
  EXPECT_NE(tcp_store({.server = here, .secret = secret_, .deadline = soon()}), nullptr);
}

// The soft limit on descriptors, for the time of a test.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t limit) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit tight{.rlim_cur = limit, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  }
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(TcpServer, UnauthenticatedConnectionsHoldAnEighthOfTheDescriptorsAtMost) {
  start({.secret = secret_, .unauthenticated_timeout = 1h, .unauthenticated_time_min = 1h});
  const auto honest = client();
  const auto open_files = [] {
    const auto entries = std::filesystem::directory_iterator("/proc/self/fd");
    return std::distance(begin(entries), end(entries));
  };
  const auto before = open_files();
  const DescriptorLimit limit(256);
  std::vector<UniqueFd> unauthenticated_sockets;
  for (int i = 0; i < 60; ++i) unauthenticated_sockets.push_back(unauthenticated());
  for (const TimePoint deadline = soon();
       open_files() < before + 60 + 32 && std::chrono::steady_clock::now() < deadline;) {
    EXPECT_EQ(honest->add("n", 0, soon()), 0);
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(honest->add("n", 0, soon()), 0) << "one accept attempt each";
  EXPECT_EQ(open_files(), before + 60 + 32);
}

TEST_F(TcpServer, SaysThatSomebodyFailedToAuthenticateAndWhence) {
  std::promise<std::string> heard;
  std::atomic<int> times = 0;
  start({.secret = secret_, .on_trouble = [&](const std::string& sentence) {
           if (times++ == 0) heard.set_value(sentence);
         }});
  unauthenticated().reset();  // a port scan is not worth a word
  EXPECT_THROW((void)tcp_store({.server = where(), .secret = wire::make_secret(), .deadline = soon()}),
               AuthenticationError);
  auto sentence = heard.get_future();
  ASSERT_EQ(sentence.wait_until(soon()), std::future_status::ready);
  EXPECT_THAT(sentence.get(), testing::StartsWith("somebody at 127.0.0.1 failed to authenticate: "));
}

// The descriptor of a server's listening socket, which a program may break by closing what it does not own.
int listening_socket(const wire::Address& address) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    int listens = 0;
    socklen_t bytes = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) == 0 && listens != 0 &&
        wire::local_address(fd) == address) {
      return fd;
    }
  }
  return -1;
}

TEST_F(TcpServer, ServesThoseWhoAreThereWhenNobodyElseCanComeIn) {
  std::promise<std::string> heard;
  start({.secret = secret_, .on_trouble = [&](const std::string& sentence) { heard.set_value(sentence); }});
  const auto honest = client();
  ASSERT_EQ(shutdown(listening_socket(server_->address()), SHUT_RDWR), 0);
  auto sentence = heard.get_future();
  ASSERT_EQ(sentence.wait_until(soon()), std::future_status::ready);
  EXPECT_THAT(sentence.get(), HasSubstr("nobody else can come to the store: listening on"));
  EXPECT_EQ(honest->add("n", 1, soon()), 1);
}

TEST_F(TcpServer, DropsAClientThatBreaksTheProtocolAndNobodyElse) {
  start();
  const auto honest = client();
  const wire::Channel broken = authenticated();
  const std::vector<std::byte> nonsense(100, std::byte{0xee});
  wire::write_some(broken.fd(), nonsense);
  EXPECT_TRUE(is_closed(broken.fd(), soon()));

  const wire::Channel greedy = authenticated();  // announces 1 TiB
  wire::write_some(greedy.fd(), wire::EncodedFrame({.type = 1, .payload_bytes = 1ull << 40}, {}).bytes());
  EXPECT_TRUE(is_closed(greedy.fd(), soon()));
  EXPECT_EQ(honest->add("n", 1, soon()), 1);
}

TEST_F(TcpServer, AClientThatDoesNotReadIsNotReadFromUntilItDoes) {
  start();
  client()->set("large", std::string(1 << 20, 'x'), soon());
  const wire::Channel lazy = authenticated();
  std::string requests;
  constexpr std::uint64_t count = 64;
  for (std::uint64_t id = 1; id <= count; ++id)
    requests += encode({.kind = Request::Kind::get, .id = id, .key = "large"});
  ASSERT_EQ(wire::write_some(lazy.fd(), std::as_bytes(std::span(requests))).bytes, requests.size());
  EXPECT_EQ(client()->add("n", 1, soon()), 1);
  ReplyStream stream;
  std::vector<std::byte> buffer(1 << 16);
  std::uint64_t answered = 0;
  while (answered < count && wire::wait_for(lazy.fd(), POLLIN, soon()) != 0) {
    const auto moved = wire::read_some(lazy.fd(), buffer);
    ASSERT_FALSE(moved.closed());
    stream.feed(std::span(buffer).first(moved.bytes), [&](Reply&& reply) { EXPECT_EQ(reply.id, ++answered); });
  }
  EXPECT_EQ(answered, count);
}

TEST_F(TcpServer, WhenItIsGoneEveryCallSaysSo) {
  start();
  const auto store = client();
  std::latch waiting(1);
  std::string error;
  std::jthread waiter([&] {
    waiting.count_down();
    try {
      store->wait("never", soon());
    } catch (const RendezvousError& gone) {
      error = gone.what();
    }
  });
  waiting.wait();
  const std::string at = where().text();
  server_.reset();
  waiter.join();
  EXPECT_THAT(error, testing::AllOf(HasSubstr(at), HasSubstr("'never'"), HasSubstr("server is gone")));
  EXPECT_THROW(store->set("k", "v", soon()), RendezvousError);
  EXPECT_THROW((void)tcp_store({.server = wire::HostPort::parse(at), .secret = secret_, .deadline = in(30ms)}),
               RendezvousError);
}

TEST_F(TcpServer, AHostThatDoesNotResolveIsNamed) {
  try {
    (void)tcp_store({.server = {"no-such-host.invalid", 1}, .secret = secret_, .deadline = soon()});
    FAIL();
  } catch (const RendezvousError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no-such-host.invalid"));
  }
}

// One of the 2 000: connects, proves itself, counts itself in, waits for the last, as a state machine that is polled.
class BarrierClient {
 public:
  enum class Phase { connecting, handshaking, where, done };

  BarrierClient(const wire::Address& server, const wire::Secret& secret)
      : connecting_(server), handshake_({.role = Handshake::Role::initiator, .secret = secret}) {}

  // Goes as far as it can without waiting.
  void step(std::int64_t clients) {
    if (phase_ == Phase::connecting) {
      const auto state = connecting_.check();
      ASSERT_NE(state, wire::Connecting::State::failed) << std::generic_category().message(connecting_.error());
      if (state == wire::Connecting::State::pending) return;
      socket_ = connecting_.take();
      phase_ = Phase::handshaking;
    }
    if (phase_ == Phase::handshaking) shake_hands();
    if (phase_ == Phase::where) meet(clients);
  }

  [[nodiscard]] pollfd poll_entry() const {
    if (phase_ == Phase::connecting) return {.fd = connecting_.fd(), .events = POLLOUT, .revents = 0};
    return {.fd = phase_ == Phase::done ? -1 : socket_.get(), .events = POLLIN, .revents = 0};
  }
  [[nodiscard]] Phase phase() const { return phase_; }

 private:
  void write(std::span<const std::byte> bytes) {
    ASSERT_EQ(wire::write_some(socket_.get(), bytes).bytes, bytes.size())
        << "an empty socket takes a small message whole";
  }

  void shake_hands() {
    for (bool more = true; more && handshake_.state() == Handshake::State::running;) {
      if (!handshake_.output().empty()) {
        write(handshake_.output());
        handshake_.sent(handshake_.output().size());
      }
      const auto moved = wire::read_some(socket_.get(), std::span(buffer_).first(handshake_.wanted()));
      ASSERT_FALSE(moved.closed()) << moved.reason();
      more = moved.moved();
      handshake_.feed(std::span(buffer_).first(moved.bytes));
    }
    ASSERT_NE(handshake_.state(), Handshake::State::failed) << handshake_.error();
    if (handshake_.state() != Handshake::State::done) return;
    phase_ = Phase::where;
    const std::string requests = encode({.kind = Request::Kind::add, .id = 1, .key = "count", .amount = 1}) +
                                 encode({.kind = Request::Kind::wait, .id = 2, .key = "go"});
    write(std::as_bytes(std::span(requests)));
  }

  void meet(std::int64_t clients) {
    const auto moved = wire::read_some(socket_.get(), buffer_);
    ASSERT_FALSE(moved.closed()) << moved.reason();
    stream_.feed(std::span(buffer_).first(moved.bytes), [&](Reply&& reply) {
      if (reply.id == 2) phase_ = Phase::done;
      if (reply.id != 1 || reply.number != clients) return;
      const std::string go = encode({.kind = Request::Kind::set, .id = 3, .key = "go"});
      write(std::as_bytes(std::span(go)));
    });
  }

  Phase phase_ = Phase::connecting;
  wire::Connecting connecting_;
  UniqueFd socket_;
  Handshake handshake_;
  ReplyStream stream_;
  std::array<std::byte, 512> buffer_;
};

void drive(std::vector<std::unique_ptr<BarrierClient>>& clients, std::int64_t total) {
  const TimePoint deadline = soon();
  std::size_t done = 0;
  while (done < clients.size() && std::chrono::steady_clock::now() < deadline && !testing::Test::HasFatalFailure()) {
    std::vector<pollfd> entries;
    for (const auto& client : clients) entries.push_back(client->poll_entry());
    poll(entries.data(), entries.size(), 1000);
    done = 0;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      if (entries[i].revents != 0) clients[i]->step(total);
      if (clients[i]->phase() == BarrierClient::Phase::done) ++done;
    }
  }
  EXPECT_EQ(done, clients.size());
}

TEST_F(TcpServer, ServesTwoThousandClientsThatComeAtOnceAndMeetInABarrier) {
  constexpr std::size_t count = 2000, threads = 2;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < 2 * count + 100)
    GTEST_SKIP() << "the hard limit of " << limit.rlim_max << " descriptors is too low";
  start();
  std::latch ready(threads);
  std::vector<std::jthread> team;
  for (std::size_t t = 0; t < threads; ++t) {
    team.emplace_back([&] {
      std::vector<std::unique_ptr<BarrierClient>> clients;
      ready.arrive_and_wait();
      for (std::size_t i = 0; i < count / threads; ++i) {
        clients.push_back(std::make_unique<BarrierClient>(server_->address(), secret_));
      }
      drive(clients, count);
    });
  }
  team.clear();
  EXPECT_EQ(client()->get("count", soon()), "2000");
}

}  // namespace
}  // namespace tutti
