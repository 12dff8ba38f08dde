// channel_test.cpp: what two sides say reaches the other one whole, and where they encrypt, nobody between them reads or changes it.
// SPDX-License-Identifier: Apache-2.0
#include "wire/channel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <tutti/error.hpp>

#include "base/random.hpp"

namespace tutti::wire {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using Bytes = std::vector<std::byte>;
using Role = Handshake::Role;
using State = Channel::State;

TimePoint soon(Duration wait = 5s) { return std::chrono::steady_clock::now() + wait; }

std::pair<UniqueFd, UniqueFd> socket_pair() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

bool contains(const Bytes& bytes, std::string_view text) {
  const auto wanted = bytes_of(text);
  // clang 14 has no ranges::search.
  return std::search(bytes.begin(), bytes.end(), wanted.begin(), wanted.end()) != bytes.end();
}

Bytes random_bytes(std::size_t count) {
  Bytes bytes(count);
  fill_random(bytes);
  return bytes;
}

// What a read of all there is gives; `end` is how it ended.
Bytes read_all(Channel& channel, Transfer& end, std::size_t piece = 5000) {
  Bytes all, buffer(piece);
  for (;;) {
    end = channel.read(buffer);
    if (!end.moved()) return all;
    all.insert(all.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(end.bytes));
  }
}

// Two channels with a man in the middle, who passes on what `to_a` and `to_b` leave of it.
class Between {
 public:
  using Change = std::function<void(Bytes&)>;

  Between(const Secret& secret, Encryption of_a, Encryption of_b) {
    auto [a, near_a] = socket_pair();
    auto [b, near_b] = socket_pair();
    near_a_ = std::move(near_a);
    near_b_ = std::move(near_b);
    initiator =
        Channel(std::move(a), {.role = Role::initiator, .secret = secret, .encryption = of_a, .purpose = "who"});
    acceptor = Channel(std::move(b), {.role = Role::acceptor, .secret = secret, .encryption = of_b, .purpose = "whom"});
  }
  Between(const Secret& secret, Encryption both) : Between(secret, both, both) {}

  // Until nothing moves any more.
  void open() {
    for (int quiet = 0; quiet < 3; ++quiet) {
      initiator.go_on_opening();
      acceptor.go_on_opening();
      if (relay()) quiet = 0;
    }
  }
  bool relay() {
    const bool forth = pass(near_a_, near_b_, to_b);
    return pass(near_b_, near_a_, to_a) || forth;
  }
  void cut() { near_a_.reset(), near_b_.reset(); }

  Channel initiator, acceptor;
  Change to_a = [](Bytes&) {}, to_b = [](Bytes&) {};
  Bytes seen;  // everything that passed

 private:
  bool pass(const UniqueFd& from, const UniqueFd& to, const Change& change) {
    Bytes bytes(1 << 16);
    const Transfer moved = read_some(from.get(), bytes);
    bytes.resize(moved.bytes);
    seen.insert(seen.end(), bytes.begin(), bytes.end());
    change(bytes);
    for (std::span<const std::byte> rest = bytes; !rest.empty();) rest = rest.subspan(write_some(to.get(), rest).bytes);
    return moved.bytes > 0;
  }

  UniqueFd near_a_, near_b_;
};

class ChannelTest : public testing::TestWithParam<Encryption> {
 protected:
  Secret secret_ = make_secret();
};
INSTANTIATE_TEST_SUITE_P(Both, ChannelTest, testing::Values(Encryption::none, Encryption::tls),
                         [](const auto& chosen) { return chosen.param == Encryption::tls ? "Tls" : "Plain"; });

TEST_P(ChannelTest, CarriesEverythingBothWaysWhateverThePieces) {
  Between between(secret_, GetParam());
  between.open();
  ASSERT_EQ(between.initiator.state(), State::open) << between.initiator.error();
  ASSERT_EQ(between.acceptor.state(), State::open) << between.acceptor.error();
  EXPECT_EQ(between.initiator.peer_purpose(), "whom");
  EXPECT_EQ(between.acceptor.peer_purpose(), "who");

  Random random(7);
  const std::array sent{random_bytes(3'000'001), random_bytes(2'000'003)};
  const std::array channels{&between.initiator, &between.acceptor};
  std::array<std::size_t, 2> written{};
  std::array<Bytes, 2> received;
  const auto is_done = [&] { return received[0].size() == sent[1].size() && received[1].size() == sent[0].size(); };
  for (int round = 0; round < 100'000 && !is_done(); ++round) {
    for (std::size_t side = 0; side < 2; ++side) {
      std::array<iovec, 3> pieces;
      std::size_t at = written[side];
      for (iovec& piece : pieces) {
        const std::size_t bytes =
            std::min<std::size_t>(random.below(round % 2 == 0 ? 60'000 : 100), sent[side].size() - at);
        piece = {.iov_base = const_cast<std::byte*>(sent[side].data()) + at, .iov_len = bytes};
        at += bytes;
      }
      written[side] += channels[side]->write(pieces).bytes;
    }
    between.relay();
    for (std::size_t side = 0; side < 2; ++side) {
      Transfer end;
      const Bytes got = read_all(*channels[side], end, 1 + random.below(70'000));
      ASSERT_FALSE(end.closed()) << end.reason();
      received[side].insert(received[side].end(), got.begin(), got.end());
    }
  }
  EXPECT_TRUE(received[0] == sent[1]);
  EXPECT_TRUE(received[1] == sent[0]);
}

// An edge-triggered poll says nothing twice.
TEST_P(ChannelTest, AReadThatIsShortHasTakenEverything) {
  Between between(secret_, GetParam());
  between.open();
  const Bytes sent = random_bytes(40'000);
  ASSERT_EQ(between.initiator.write(sent).bytes, sent.size());
  between.relay();
  Bytes buffer(sent.size() + 1);
  EXPECT_EQ(between.acceptor.read(buffer).bytes, sent.size());
  EXPECT_FALSE(between.acceptor.holds_input());
}

TEST_P(ChannelTest, OpensByTheDeadlineOrSaysWhoDidNotAnswer) {
  auto [here, there] = socket_pair();
  Channel initiator(std::move(here), {.role = Role::initiator, .secret = secret_, .encryption = GetParam()});
  std::jthread server([&, socket = std::move(there)]() mutable {
    Channel acceptor(std::move(socket), {.role = Role::acceptor, .secret = secret_, .encryption = GetParam()});
    open_channel(acceptor, "a client", soon());
  });
  EXPECT_NO_THROW(open_channel(initiator, "the server", soon()));

  auto [mine, silent] = socket_pair();
  Channel waiting(std::move(mine), {.role = Role::initiator, .secret = secret_, .encryption = GetParam()});
  try {
    open_channel(waiting, "the store at 127.0.0.1", soon(20ms));
    FAIL() << "authenticated by silence";
  } catch (const AuthenticationError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the store at 127.0.0.1 cannot be authenticated: it did not answer in time"));
  }
}

TEST_P(ChannelTest, IsReadByThoseBetweenOnlyIfItIsNotEncrypted) {
  Between between(secret_, GetParam());
  between.open();
  ASSERT_EQ(between.initiator.write(bytes_of("attack at dawn")).bytes, 14u);
  between.relay();
  Transfer end;
  EXPECT_EQ(read_all(between.acceptor, end), bytes_of("attack at dawn"));
  EXPECT_EQ(contains(between.seen, "attack at dawn"), GetParam() == Encryption::none);
}

class Tls : public testing::Test {
 protected:
  void open() {
    between_.open();
    ASSERT_EQ(between_.initiator.state(), State::open) << between_.initiator.error();
    ASSERT_EQ(between_.acceptor.state(), State::open) << between_.acceptor.error();
  }
  // Sends that, changed on the way: what is read is its beginning at most, and then the connection is over, for good.
  void expect_refused(std::string_view what, const Bytes& sent, const Between::Change& change) {
    between_.to_b = change;
    ASSERT_EQ(between_.initiator.write(sent).bytes, sent.size());
    while (between_.relay() || between_.initiator.has_unsent()) between_.initiator.write(std::span<const iovec>());
    Transfer end;
    const Bytes got = read_all(between_.acceptor, end);
    EXPECT_TRUE(end.closed()) << what;
    EXPECT_THAT(end.reason(), AllOf(HasSubstr("TLS: "), HasSubstr("changed or cut off on the way"))) << what;
    EXPECT_LT(got.size(), sent.size()) << what;
    EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin())) << what;
    EXPECT_TRUE(read_all(between_.acceptor, end).empty());
    EXPECT_TRUE(end.closed());
    EXPECT_TRUE(between_.acceptor.write(sent).closed()) << "it would speak to whoever did that";
  }

  static constexpr std::size_t record_bytes = 16'384 + 22;  // on the wire: a head of 5, a type of 1, a tag of 16
  Secret secret_ = make_secret();
  Between between_{secret_, Encryption::tls};
};

TEST_F(Tls, EveryBitOfARecordCounts) {
  for (const std::size_t at : {0u, 1u, 3u, 4u, 5u, 100u, 5000u, 16'405u, 16'406u, 20'000u}) {
    between_ = Between(secret_, Encryption::tls);
    open();
    const Bytes sent = random_bytes(30'000);
    bool done = false;
    expect_refused(fmt::format("byte {}", at), sent, [&](Bytes& bytes) {
      if (bytes.size() > at && !std::exchange(done, true)) bytes[at] ^= std::byte{4};
    });
  }
}

TEST_F(Tls, RecordsThatAreLeftOutRepeatedOrSwappedAreRefused) {
  const auto only_once = [](auto change) {
    return [change, done = false](Bytes& bytes) mutable {
      if (bytes.size() >= 2 * record_bytes && !std::exchange(done, true)) change(bytes);
    };
  };
  const auto record = [](Bytes& bytes, int number) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(record_bytes) * number;
  };
  open();
  expect_refused("left out", random_bytes(60'000),
                 only_once([&](Bytes& bytes) { bytes.erase(record(bytes, 0), record(bytes, 1)); }));
  between_ = Between(secret_, Encryption::tls);
  open();
  expect_refused("repeated", random_bytes(60'000), only_once([&](Bytes& bytes) {
                   const Bytes first(record(bytes, 0), record(bytes, 1));
                   bytes.insert(record(bytes, 1), first.begin(), first.end());
                 }));
  between_ = Between(secret_, Encryption::tls);
  open();
  expect_refused("swapped", random_bytes(60'000),
                 only_once([&](Bytes& bytes) { std::rotate(record(bytes, 0), record(bytes, 1), record(bytes, 2)); }));
}

TEST_F(Tls, ARecordOfAnotherConnectionOfTheSameJobIsRefused) {
  Between other(secret_, Encryption::tls);
  other.open();
  other.seen.clear();
  ASSERT_EQ(other.initiator.write(bytes_of("pay the other one")).bytes, 17u);
  other.relay();
  open();
  expect_refused("spliced", bytes_of("pay this one"), [&](Bytes& bytes) {
    if (!bytes.empty()) bytes = other.seen;
  });
}

TEST_F(Tls, BytesThatWereNotSealedAreRefused) {
  open();
  expect_refused("plaintext", bytes_of("sealed"), [](Bytes& bytes) {
    if (!bytes.empty()) bytes = bytes_of("this is not sealed at all");
  });
}

// The conversation says whether it was over; what is cut off in the middle of a record is not delivered.
TEST_F(Tls, WhatIsCutOffEndsTheConnectionBehindTheLastWholeRecord) {
  open();
  const Bytes sent = random_bytes(40'000);
  between_.to_b = [](Bytes& bytes) { bytes.resize(std::min(bytes.size(), 2 * record_bytes - 1)); };
  ASSERT_EQ(between_.initiator.write(sent).bytes, sent.size());
  between_.relay();
  between_.cut();
  Transfer end;
  const Bytes got = read_all(between_.acceptor, end);
  EXPECT_TRUE(end.closed());
  EXPECT_EQ(got.size(), 16'384u);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin()));
}

TEST_F(Tls, AHandshakeThatIsTamperedWithFailsAndIsNotRepeated) {
  for (const bool towards_acceptor : {true, false}) {
    between_ = Between(secret_, Encryption::tls);
    // The first record of TLS begins with 22, 3; all before it is Tutti's own handshake.
    const auto change = [](Bytes& bytes) {
      if (bytes.size() > 100 && bytes[0] == std::byte{22} && bytes[1] == std::byte{3}) bytes[60] ^= std::byte{1};
    };
    (towards_acceptor ? between_.to_b : between_.to_a) = change;
    between_.open();
    EXPECT_NE(between_.initiator.state(), State::open);
    EXPECT_NE(between_.acceptor.state(), State::open);
    const Channel& first = towards_acceptor ? between_.acceptor : between_.initiator;
    EXPECT_THAT(first.error(), HasSubstr("in the handshake of TLS"));
    EXPECT_FALSE(first.was_too_late());
  }
}

TEST_F(Tls, SidesWithOtherSecretsDoNotGetToTls) {
  auto [here, there] = socket_pair();
  Channel initiator(std::move(here), {.role = Role::initiator, .secret = secret_, .encryption = Encryption::tls});
  Channel acceptor(std::move(there), {.role = Role::acceptor, .secret = make_secret(), .encryption = Encryption::tls});
  for (int round = 0; round < 10; ++round) initiator.go_on_opening(), acceptor.go_on_opening();
  EXPECT_EQ(initiator.state(), State::failed);
  EXPECT_THAT(initiator.error(), HasSubstr("does not know this job's secret"));
  EXPECT_FALSE(acceptor.peer_is_proven());
}

TEST_F(Tls, OneSideThatWantsItAndOneThatDoesNotBothSaySo) {
  Between between(secret_, Encryption::tls, Encryption::none);
  between.open();
  EXPECT_EQ(between.initiator.state(), State::failed);
  EXPECT_EQ(between.acceptor.state(), State::failed);
  EXPECT_THAT(between.initiator.error(), HasSubstr("TUTTI_TLS=1"));
  EXPECT_THAT(between.acceptor.error(), HasSubstr("TUTTI_TLS=1"));
}

// Two sessions without the handshake before them: the key is all that matters.
struct Sessions {
  using Key = std::array<std::byte, tls_key_bytes>;

  Sessions(const Key& of_client, const Key& of_server, std::uint64_t records_per_key = tls_records_per_key)
      : sockets(socket_pair()),
        client(sockets.first.get(), TlsSession::Role::client, of_client, records_per_key),
        server(sockets.second.get(), TlsSession::Role::server, of_server, records_per_key) {
    for (int round = 0; round < 5; ++round)
      last_of_client = client.shake_hands(), last_of_server = server.shake_hands();
  }

  std::pair<UniqueFd, UniqueFd> sockets;
  TlsSession client, server;
  Transfer last_of_client, last_of_server;
};

TEST(TlsSession, AnotherKeyIsRefusedByBoth) {
  Sessions sessions({std::byte{1}}, {std::byte{2}});
  EXPECT_TRUE(sessions.last_of_client.closed());
  EXPECT_TRUE(sessions.last_of_server.closed());
}

TEST(TlsSession, KeysAreRenewedWithoutALoss) {
  Sessions sessions({std::byte{1}}, {std::byte{1}}, 3);
  ASSERT_TRUE(sessions.last_of_client.moved() && sessions.last_of_server.moved());
  for (int round = 0; round < 50; ++round) {
    Bytes sent = random_bytes(40'000), got(sent.size());
    const iovec from{.iov_base = sent.data(), .iov_len = sent.size()},
        into{.iov_base = got.data(), .iov_len = got.size()};
    ASSERT_EQ(sessions.client.write(std::span(&from, 1)).bytes, sent.size());
    const Transfer moved = sessions.server.read(std::span(&into, 1));
    ASSERT_EQ(moved.bytes, sent.size()) << moved.reason();
    ASSERT_TRUE(got == sent);
  }
}

}  // namespace
}  // namespace tutti::wire
