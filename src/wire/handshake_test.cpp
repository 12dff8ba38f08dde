// handshake_test.cpp: two sides that know the secret pass; all others are rejected with a reason.
// SPDX-License-Identifier: Apache-2.0
#include "wire/handshake.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include <tutti/error.hpp>

namespace tutti::wire {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Role = Handshake::Role;
using State = Handshake::State;

// Moves bytes both ways, `piece` at a time, until neither side has any more to say.
void talk(Handshake& a, Handshake& b, std::size_t piece = 1000) {
  const auto move = [piece](Handshake& from, Handshake& to) {
    const std::vector<std::byte> bytes(from.output().begin(), from.output().end());
    const std::size_t count = std::min(piece, bytes.size());
    from.sent(count);
    to.feed(std::span(bytes).first(count));
    return count > 0;
  };
  for (bool more = true; more;) {
    more = move(a, b);
    more = move(b, a) || more;
  }
}

class HandshakeTest : public testing::Test {
 protected:
  Handshake make(Role role, std::string_view purpose = {}) {
    return Handshake({.role = role, .secret = secret_, .purpose = purpose});
  }
  Secret secret_ = make_secret();
};

TEST_F(HandshakeTest, TwoThatKnowTheSecretMeetAndLearnEachOthersPurpose) {
  for (std::size_t piece = 1; piece < 150; ++piece) {
    Handshake initiator = make(Role::initiator, "rank 3, stream 1");
    Handshake acceptor = make(Role::acceptor, std::string(64, 'x'));
    talk(initiator, acceptor, piece);
    ASSERT_EQ(initiator.state(), State::done) << piece;
    ASSERT_EQ(acceptor.state(), State::done) << piece;
    EXPECT_EQ(acceptor.peer_purpose(), "rank 3, stream 1");
    EXPECT_EQ(initiator.peer_purpose(), std::string(64, 'x'));
  }
}

TEST_F(HandshakeTest, IsNotDoneBeforeEachSideKnowsThatTheOtherOneIsSatisfied) {
  Handshake initiator = make(Role::initiator);
  Handshake acceptor = make(Role::acceptor);
  acceptor.feed(initiator.output());
  initiator.sent(initiator.output().size());
  initiator.feed(acceptor.output());
  EXPECT_EQ(initiator.state(), State::running);
  EXPECT_EQ(acceptor.state(), State::running);
  EXPECT_EQ(initiator.wanted(), 1u);
  acceptor.sent(acceptor.output().size());
  acceptor.feed(initiator.output());
  initiator.sent(initiator.output().size());
  EXPECT_EQ(initiator.state(), State::running) << "the acceptor may have given up waiting for the proof";
  EXPECT_EQ(acceptor.state(), State::running);
  initiator.feed(acceptor.output());
  acceptor.sent(acceptor.output().size());
  EXPECT_EQ(initiator.state(), State::done);
  EXPECT_EQ(acceptor.state(), State::done);
}

TEST_F(HandshakeTest, AnInitiatorThatWasTooLateIsNotTakenForOneWithAnotherSecret) {
  Handshake initiator = make(Role::initiator);
  Handshake acceptor = make(Role::acceptor);
  acceptor.feed(initiator.output());
  initiator.sent(initiator.output().size());
  EXPECT_FALSE(initiator.peer_is_proven());
  initiator.feed(acceptor.output());
  EXPECT_TRUE(initiator.peer_is_proven());
  initiator.closed("closed the connection");
  EXPECT_THAT(initiator.error(), AllOf(HasSubstr("this side was too late"), Not(HasSubstr("secret"))));
}

TEST_F(HandshakeTest, AnythingButTheWelcomeIsRefused) {
  Handshake initiator = make(Role::initiator);
  Handshake acceptor = make(Role::acceptor);
  acceptor.feed(initiator.output());
  initiator.sent(initiator.output().size());
  initiator.feed(acceptor.output());
  initiator.feed(std::vector{std::byte{1}});
  EXPECT_EQ(initiator.state(), State::failed);
}

TEST_F(HandshakeTest, NeverTakesBytesOfWhatFollows) {
  Handshake initiator = make(Role::initiator);
  Handshake acceptor = make(Role::acceptor);
  std::vector<std::byte> bytes(initiator.output().begin(), initiator.output().end());
  initiator.sent(bytes.size());
  bytes.resize(bytes.size() + Handshake::mac_bytes + 10);
  EXPECT_EQ(acceptor.feed(bytes), bytes.size() - 10);
  EXPECT_EQ(acceptor.feed(bytes), 0u);
}

TEST_F(HandshakeTest, TheInitiatorFindsAWrongSecretAndSaysWhatToCheck) {
  const Secret other = make_secret();
  Handshake initiator = make(Role::initiator);
  Handshake acceptor({.role = Role::acceptor, .secret = other});
  talk(initiator, acceptor);
  EXPECT_EQ(initiator.state(), State::failed);
  EXPECT_THAT(initiator.error(), HasSubstr("TUTTI_SECRET"));
  EXPECT_NE(acceptor.state(), State::done);
  acceptor.closed("closed the connection");
  EXPECT_EQ(acceptor.state(), State::failed);
  EXPECT_THAT(acceptor.error(), HasSubstr("secret"));
}

TEST_F(HandshakeTest, AnInitiatorThatOnlyPretendsIsRefused) {
  Handshake initiator = make(Role::initiator);
  Handshake acceptor = make(Role::acceptor);
  acceptor.feed(initiator.output());
  acceptor.sent(acceptor.output().size());
  acceptor.feed(std::vector<std::byte>(Handshake::mac_bytes, std::byte{1}));
  EXPECT_EQ(acceptor.state(), State::failed);
}

TEST_F(HandshakeTest, DifferentVersionsTellEachOtherBoth) {
  Handshake initiator({.role = Role::initiator, .secret = secret_, .version = 1});
  Handshake acceptor({.role = Role::acceptor, .secret = secret_, .version = 2});
  talk(initiator, acceptor);
  EXPECT_EQ(initiator.state(), State::failed);
  EXPECT_EQ(acceptor.state(), State::failed);
  EXPECT_THAT(initiator.error(), HasSubstr("speaks version 2 of the protocol and this side version 1"));
  EXPECT_THAT(acceptor.error(), HasSubstr("speaks version 1 of the protocol and this side version 2"));
}

TEST_F(HandshakeTest, OtherProtocolsAreRefusedAtTheirFirstTenBytesWithoutAnAnswer) {
  Handshake acceptor = make(Role::acceptor);
  acceptor.feed(std::as_bytes(std::span(std::string_view("GET / HTTP/1.1\r\n"))));
  EXPECT_EQ(acceptor.state(), State::failed);
  EXPECT_TRUE(acceptor.output().empty());
  EXPECT_EQ(acceptor.wanted(), 0u);
}

TEST_F(HandshakeTest, OnesOwnBytesSentBackProveNothing) {
  Handshake initiator = make(Role::initiator);
  const std::vector<std::byte> echo(initiator.output().begin(), initiator.output().end());
  initiator.sent(echo.size());
  initiator.feed(echo);
  EXPECT_EQ(initiator.state(), State::failed);
}

// The attacker opens a second connection to the same rank and lets it compute the answer to its own question.
TEST_F(HandshakeTest, AnAnswerFromAParallelConnectionDoesNotFit) {
  Handshake victim = make(Role::initiator);
  Handshake oracle = make(Role::acceptor);  // the same rank, listening
  oracle.feed(victim.output());
  // Relayed unchanged, a man in the middle learns nothing; with a changed role or purpose the handshake must fail.
  std::vector<std::byte> answer(oracle.output().begin(), oracle.output().end());
  answer[Handshake::prefix_bytes + 3 + Handshake::nonce_bytes] ^= std::byte{1};  // the purpose
  victim.feed(answer);
  EXPECT_EQ(victim.state(), State::failed);

  // The acceptor's proof is not the initiator's: sending it back to the one who made it fails.
  oracle.feed(std::span(answer).subspan(Handshake::hello_bytes));
  EXPECT_EQ(oracle.state(), State::failed);
}

TEST_F(HandshakeTest, ARecordedConversationCannotBeReplayed) {
  Handshake::Nonce nonce{};
  Handshake initiator({.role = Role::initiator, .secret = secret_, .nonce = nonce});
  Handshake acceptor = make(Role::acceptor);
  std::vector<std::byte> recorded(initiator.output().begin(), initiator.output().end());
  acceptor.feed(recorded);
  initiator.sent(recorded.size());
  initiator.feed(acceptor.output());
  recorded.insert(recorded.end(), initiator.output().begin(), initiator.output().end());

  Handshake next = make(Role::acceptor);
  EXPECT_EQ(next.feed(recorded), recorded.size());
  EXPECT_EQ(next.state(), State::failed);
}

TEST_F(HandshakeTest, APurposeThatDoesNotFitIsTheCallersMistake) {
  EXPECT_THROW(make(Role::initiator, std::string(65, 'x')), InvalidArgument);
}

TEST_F(HandshakeTest, EachConnectionHasAKeyThatBothSidesKnow) {
  std::set<std::array<std::byte, Handshake::mac_bytes>> keys;
  for (int connection = 0; connection < 10; ++connection) {
    Handshake initiator = make(Role::initiator, "the same");
    Handshake acceptor = make(Role::acceptor, "the same");
    talk(initiator, acceptor);
    EXPECT_EQ(initiator.channel_key(), acceptor.channel_key());
    keys.insert(initiator.channel_key());
  }
  EXPECT_EQ(keys.size(), 10u);
}

TEST_F(HandshakeTest, SidesThatDoNotAgreeOnEncryptionBothSayWhatToDo) {
  for (const bool initiator_encrypts : {true, false}) {
    const auto wish = [](bool encrypts) { return encrypts ? Encryption::tls : Encryption::none; };
    Handshake initiator({.role = Role::initiator, .secret = secret_, .encryption = wish(initiator_encrypts)});
    Handshake acceptor({.role = Role::acceptor, .secret = secret_, .encryption = wish(!initiator_encrypts)});
    talk(initiator, acceptor);
    EXPECT_EQ(initiator.state(), State::failed);
    EXPECT_EQ(acceptor.state(), State::failed);
    const std::string_view here = "on this side only: set TUTTI_TLS=1", there = "on its side only: set TUTTI_TLS=1";
    EXPECT_THAT(initiator.error(), HasSubstr(initiator_encrypts ? here : there));
    EXPECT_THAT(acceptor.error(), HasSubstr(initiator_encrypts ? there : here));
  }
}

TEST_F(HandshakeTest, NobodyBetweenTwoSidesThatEncryptCanHaveThemAgreeOnLess) {
  Handshake initiator({.role = Role::initiator, .secret = secret_, .encryption = Encryption::tls});
  Handshake acceptor({.role = Role::acceptor, .secret = secret_, .encryption = Encryption::tls});
  const auto relay = [](Handshake& from, Handshake& to) {
    std::vector<std::byte> bytes(from.output().begin(), from.output().end());
    from.sent(bytes.size());
    bytes[Handshake::prefix_bytes + 1] = std::byte{0};
    to.feed(bytes);
  };
  relay(initiator, acceptor);
  relay(acceptor, initiator);
  EXPECT_EQ(initiator.state(), State::failed);
  EXPECT_EQ(acceptor.state(), State::failed);
}

}  // namespace
}  // namespace tutti::wire
