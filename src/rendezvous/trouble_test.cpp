// trouble_test.cpp: ranks that do not find each other learn why, all of them, in time.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "rendezvous/file_board.hpp"
#include "rendezvous/membership.hpp"
#include "rendezvous/store_access.hpp"
#include "store/memory_store.hpp"
#include "tests/support/ranks_as_threads.hpp"

namespace tutti::rendezvous {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

class Trouble : public testing::Test {
 protected:
  Caller by_hand(int rank, int size, Duration timeout = 5s) {
    return {.environment = Environment({{"RANK", fmt::to_string(rank)},
                                        {"WORLD_SIZE", fmt::to_string(size)},
                                        {"MASTER_ADDR", "127.0.0.1"},
                                        {"MASTER_PORT", fmt::to_string(port_)},
                                        {"HOME", folder_.path().string()}}),
            .options = {.timeout = timeout}};
  }

  Caller by_file(int rank, int size, Duration timeout = 5s) {
    return {.environment = Environment({{"HOME", folder_.path().string()}}),
            .options = {.init_method = "file://" + (folder_.path() / "meeting").string(),
                        .rank = rank,
                        .size = size,
                        .timeout = timeout}};
  }

  static Caller with(Caller caller, std::string name, std::string value) {
    caller.environment.set(std::move(name), std::move(value));
    return caller;
  }

  TemporaryFolder folder_;
  std::uint16_t port_ = free_port();
};

TEST_F(Trouble, MissingRanksAreNamedToEveryoneWhoCame) {
  const auto outcomes = connect_all({by_hand(0, 6, 1s), by_hand(2, 6, 1s)});
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.error,
                AllOf(StartsWith("RendezvousError: rank "), HasSubstr("ranks 1 and 3–5 of 6 did not come")));
  }
}

TEST_F(Trouble, AnotherVersionIsNamedToAllBeforeAnythingElseIsSaid) {
  const auto store = memory_store();
  const auto member = [&](int rank, std::string version) {
    return Membership(*store, {.rank = rank, .size = 3, .host = "h", .version = std::move(version), .token = "t"},
                      steady_clock(), soon());
  };
  Membership first = member(0, "1.2.3"), same = member(1, "1.2.3"), other = member(2, "1.2.4");
  first.sign_in();
  same.sign_in();
  const auto says_why = [](auto call) {
    try {
      call();
      ADD_FAILURE() << "two versions met";
    } catch (const RendezvousError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 2 (pid 0 on host h) has version 1.2.4 of Tutti"),
                                      HasSubstr("rank 0 (pid 0 on host h) version 1.2.3; install the same")));
    }
  };
  says_why([&] { other.sign_in(); });
  says_why([&] { first.verdict(soon()); });
  says_why([&] { same.verdict(soon()); });
}

TEST_F(Trouble, RanksOfWhichSomeEncryptAreToldSo) {
  for (const int encrypting : {0, 1}) {
    std::vector<Caller> callers{by_hand(0, 2, 2s), by_hand(1, 2, 2s)};
    callers[static_cast<std::size_t>(encrypting)].environment.set("TUTTI_TLS", "1");
    for (const Outcome& outcome : connect_all(callers))
      EXPECT_THAT(outcome.error, HasSubstr("set TUTTI_TLS=1 for all"));
    for (Caller& caller : callers) caller.environment.set("TUTTI_TLS", "1");
    for (const Outcome& outcome : connect_all(callers)) EXPECT_EQ(outcome.error, "");
  }
}

TEST_F(Trouble, WhoWaitsLongerLearnsItWithTheFirst) {
  const TimePoint start = std::chrono::steady_clock::now();
  const auto outcomes = connect_all({by_hand(0, 3, 60s), by_hand(1, 3, 500ms)});
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  EXPECT_THAT(outcomes[0].error, HasSubstr("rank 0 of 3: rank 2 of 3 did not come"));
  EXPECT_THAT(outcomes[1].error, HasSubstr("rank 1 of 3: rank 2 of 3 did not come"));
}

TEST_F(Trouble, WithoutRankZeroTheOthersSayWhereTheyWaited) {
  EXPECT_THAT(connect_as(by_hand(1, 2, 300ms)).error,
              AllOf(StartsWith("RendezvousError: rank 1 of 2: "), HasSubstr(fmt::format("127.0.0.1:{}", port_))));
  EXPECT_THAT(connect_as(by_file(1, 2, 300ms)).error,
              AllOf(StartsWith("RendezvousError: rank 1 of 2: rank 0 left no record in "), HasSubstr("meeting")));
}

TEST_F(Trouble, ARankStartedTwiceIsNamedToEveryone) {
  const auto outcomes = connect_all({by_hand(0, 3), by_hand(1, 3), by_hand(1, 3)});
  for (const Outcome& outcome : outcomes) EXPECT_THAT(outcome.error, HasSubstr("rank 1 of 3 was started twice: pid "));
}

TEST_F(Trouble, RankZeroStartedTwiceIsNamedToEveryoneByHand) {
  const auto outcomes = connect_all({by_hand(0, 3), by_hand(0, 3), by_hand(1, 3)});
  for (const Outcome& outcome : outcomes) EXPECT_THAT(outcome.error, HasSubstr("rank 0 of 3 was started twice: pid "));
}

TEST_F(Trouble, RankZeroStartedTwiceIsNamedToEveryoneByFile) {
  const auto outcomes = connect_all({by_file(0, 3), by_file(0, 3), by_file(1, 3)});
  for (const Outcome& outcome : outcomes) EXPECT_THAT(outcome.error, HasSubstr("rank 0 of 3 was started twice: pid "));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "meeting"));
}

TEST_F(Trouble, SizesThatDifferAreNamedWithBothSides) {
  const auto outcomes = connect_all({by_hand(0, 3), by_hand(1, 4)});
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("rank 0 ("), HasSubstr("rank 1 ("), HasSubstr("WORLD_SIZE"),
                                     AnyOf(HasSubstr("of 3 ranks"), HasSubstr("of 4 ranks"))));
  }
}

TEST_F(Trouble, ARankOutsideTheWorldIsRefusedBeforeAnythingMoves) {
  EXPECT_THAT(connect_as(by_hand(2, 2)).error, AllOf(StartsWith("InvalidArgument: "), HasSubstr("RANK=2")));
  EXPECT_THAT(connect_as(by_file(3, 2)).error, AllOf(StartsWith("InvalidArgument: "), HasSubstr("rank 3 of 2")));
  EXPECT_THAT(connect_as(by_file(-2, 2)).error, StartsWith("InvalidArgument: "));
}

TEST_F(Trouble, AWrongSecretIsAnAuthenticationErrorForWhoHasIt) {
  const Caller wrong = with(by_hand(1, 2, 2s), "TUTTI_SECRET", std::string(64, 'a'));
  std::string warnings;
  Caller root = by_hand(0, 2, 2s);
  root.log = Log(Log::Level::warn, "tutti[0]", [&](std::string_view line) { warnings += line; });
  const auto outcomes = connect_all({root, wrong});
  EXPECT_THAT(outcomes[1].error, StartsWith("AuthenticationError: rank 1 of 2: "));
  EXPECT_THAT(outcomes[0].error,
              AllOf(HasSubstr("rank 1 of 2 did not come"), HasSubstr("somebody at 127.0.0.1 failed to authenticate")));
  EXPECT_THAT(warnings, AllOf(HasSubstr("waiting at rank 0's store"), HasSubstr("failed to authenticate")));
}

TEST_F(Trouble, ATextThatIsNoSecretIsNotRepeated) {
  const std::string error = connect_as(with(by_hand(1, 2), "TUTTI_SECRET", "hunter2")).error;
  EXPECT_THAT(error, AllOf(StartsWith("InvalidArgument: TUTTI_SECRET"), HasSubstr("64 hexadecimal")));
  EXPECT_THAT(error, testing::Not(HasSubstr("hunter2")));
}

TEST_F(Trouble, AcrossMachinesWithoutASecretIsRefusedWithInstructions) {
  const Caller caller = with(by_hand(1, 2), "MASTER_ADDR", "198.51.100.7");
  EXPECT_THAT(connect_as(caller).error,
              AllOf(StartsWith("AuthenticationError: rank 1 of 2: 198.51.100.7 is another machine"),
                    HasSubstr("TUTTI_SECRET"), HasSubstr("openssl rand -hex 32")));
  const Caller torchrun{.environment = Environment({{"TORCHELASTIC_RUN_ID", "x"},
                                                    {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                    {"RANK", "0"},
                                                    {"WORLD_SIZE", "4"},
                                                    {"LOCAL_WORLD_SIZE", "2"},
                                                    {"GROUP_WORLD_SIZE", "2"},
                                                    {"MASTER_ADDR", "127.0.0.1"},
                                                    {"HOME", folder_.path().string()}})};
  EXPECT_THAT(connect_as(torchrun).error,
              AllOf(StartsWith("AuthenticationError: rank 0 of 4: torchrun"), HasSubstr("TUTTI_SECRET")));
}

TEST_F(Trouble, RankZeroMustBeWhereMasterAddrSays) {
  Caller caller = with(by_hand(0, 2), "MASTER_ADDR", "198.51.100.7");
  caller.environment.set("TUTTI_SECRET", std::string(64, 'a'));
  EXPECT_THAT(connect_as(caller).error,
              AllOf(StartsWith("RendezvousError: rank 0 of 2: "), HasSubstr("no address of this machine")));
}

TEST_F(Trouble, AHostThatDoesNotResolveIsNamed) {
  EXPECT_THAT(connect_as(with(by_hand(1, 2), "MASTER_ADDR", "no-such-host.invalid")).error,
              AllOf(StartsWith("RendezvousError: rank 1 of 2: "), HasSubstr("no-such-host.invalid")));
}

TEST_F(Trouble, APortHeldByAnotherProgramIsNamedWithWhatToDo) {
  const ServedStore other_program = serve_store(wire::Address::loopback(port_), {wire::make_secret()}, soon());
  EXPECT_THAT(connect_as(by_hand(0, 2, 1s)).error, AllOf(StartsWith("RendezvousError: rank 0 of 2: "),
                                                         HasSubstr("not of this job"), HasSubstr("MASTER_PORT")));
  EXPECT_THAT(connect_as(by_hand(1, 2, 1s)).error, StartsWith("AuthenticationError: rank 1 of 2: "));
}

TEST_F(Trouble, AConnectionThatSaysNothingDoesNotHangAnyone) {
  const wire::Listener silent(wire::Address::loopback(port_));
  EXPECT_THAT(connect_as(by_hand(0, 2, 700ms)).error, HasSubstr("rank 0 of 2: "));
  EXPECT_THAT(connect_as(by_hand(1, 2, 700ms)).error, HasSubstr("rank 1 of 2: "));
}

TEST_F(Trouble, APathThatCannotBeWrittenIsNamed) {
  Caller caller = by_file(0, 2);
  caller.options.init_method = "file://" + (folder_.path() / "not" / "there").string();
  EXPECT_THAT(connect_as(caller).error,
              AllOf(StartsWith("RendezvousError: rank 0 of 2: cannot make the meeting file"), HasSubstr("not/there")));
  caller.options.init_method = "file://" + folder_.path().string();
  EXPECT_THAT(connect_as(caller).error, StartsWith("RendezvousError: rank 0 of 2: "));
}

TEST_F(Trouble, AFullDiskIsSaidAndLeavesNoHalfFile) {
  const auto path = folder_.path() / "meeting";
  const auto board = make_file_board(path);
  // A limit on the size of files fails a write as a full disk does.
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit tight{.rlim_cur = 16, .rlim_max = before.rlim_max};
  std::string error;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  try {
    board->post({.where = {.host = "127.0.0.1", .port = 1}, .nonce = make_nonce(), .secret = {}, .writer = "x"},
                soon());
  } catch (const RendezvousError& caught) {
    error = caught.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(error, AllOf(HasSubstr("cannot write the meeting file " + path.string()), HasSubstr("free some space")));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(Trouble, UnknownMethodsAndContradictionsAreTheCallersMistake) {
  const auto error_of = [&](const InitOptions& options, const Environment::Variables& variables = {}) {
    return connect_as({.environment = Environment(variables), .options = options}).error;
  };
  EXPECT_THAT(error_of({.init_method = "udp://x"}), AllOf(StartsWith("InvalidArgument: "), HasSubstr("udp://x")));
  EXPECT_THAT(error_of({.init_method = "tcp://x:1"}), HasSubstr("needs rank and size"));
  EXPECT_THAT(error_of({.init_method = "tcp://x", .rank = 0, .size = 2}), HasSubstr("no port"));
  EXPECT_THAT(error_of({.init_method = "tcp://x:0", .rank = 0, .size = 2}), HasSubstr("port 0"));
  EXPECT_THAT(error_of({.init_method = "file://x", .rank = 0, .size = 2}), HasSubstr("absolute"));
  EXPECT_THAT(error_of({.init_method = "env://"}), HasSubstr("WORLD_SIZE is not set"));
  EXPECT_THAT(error_of({.rank = 1}), HasSubstr("WORLD_SIZE is not set"));
  EXPECT_THAT(error_of({.size = 2}), HasSubstr("RANK is not set"));
  EXPECT_THAT(error_of({.rank = 0, .size = 0}), StartsWith("InvalidArgument: "));
  EXPECT_THAT(error_of({.rank = 1, .size = 2}, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
              AllOf(HasSubstr("rank 1 of 2"), HasSubstr("Open MPI started this process as rank 0 of 2")));
}

}  // namespace
}  // namespace tutti::rendezvous
