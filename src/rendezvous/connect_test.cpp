// connect_test.cpp: ranks find each other, by every method that needs no launcher.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/connect.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "rendezvous/store_access.hpp"
#include "store/tcp_server.hpp"
#include "tests/support/ranks_as_threads.hpp"

namespace tutti::rendezvous {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* secret_text = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

class Connect : public testing::Test {
 protected:
  // By hand, on one machine, with a home of the test's own.
  Caller by_hand(int rank, int size) {
    return {.environment = Environment({{"RANK", fmt::to_string(rank)},
                                        {"WORLD_SIZE", fmt::to_string(size)},
                                        {"MASTER_ADDR", "127.0.0.1"},
                                        {"MASTER_PORT", fmt::to_string(port_)},
                                        {"HOME", folder_.path().string()}}),
            .options = {.timeout = 20s}};
  }

  Caller by_method(int rank, int size, const std::string& method) {
    return {.environment = Environment({{"HOME", folder_.path().string()}}),
            .options = {.init_method = method, .rank = rank, .size = size, .timeout = 20s}};
  }

  template <class Make>
  std::vector<Outcome> connect_world(int size, Make&& make) {
    std::vector<Caller> callers;
    for (int rank = 0; rank < size; ++rank) callers.push_back(make(rank));
    return connect_all(callers);
  }

  static void expect_a_working_world(const std::vector<Outcome>& outcomes) {
    for (const Outcome& outcome : outcomes) ASSERT_EQ(outcome.error, "");
    const int size = static_cast<int>(outcomes.size());
    on_all(outcomes, [&](Connector& connector) {
      const Place& place = connector.place();
      EXPECT_EQ(place.size, size);
      connector.barrier(soon());
      const auto values = connector.exchange(fmt::format("value {}", place.rank), soon());
      ASSERT_EQ(values.size(), outcomes.size());
      for (int rank = 0; rank < size; ++rank)
        EXPECT_EQ(values[static_cast<std::size_t>(rank)], fmt::format("value {}", rank));
      for (int root = 0; root < size; ++root) {
        EXPECT_EQ(connector.broadcast(fmt::format("from {}", place.rank), root, soon()), fmt::format("from {}", root));
      }
      connector.barrier(soon());
    });
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      EXPECT_EQ(outcomes[i].connector->place().rank, static_cast<int>(i));
      EXPECT_EQ(outcomes[i].connector->secret(), outcomes[0].connector->secret());
      EXPECT_EQ(outcomes[i].connector->secret().size(), 32u);
    }
  }

  TemporaryFolder folder_;
  std::uint16_t port_ = free_port();
};

TEST_F(Connect, ByHandTheRanksMeetAtMasterAddr) {
  const auto outcomes = connect_world(5, [&](int rank) { return by_hand(rank, 5); });
  expect_a_working_world(outcomes);
  EXPECT_EQ(outcomes[3].connector->place().local_rank, 3);
  EXPECT_EQ(outcomes[3].connector->place().local_size, 5);
  EXPECT_EQ(outcomes[3].connector->place().node_count, 1);
  EXPECT_THAT(outcomes[3].connector->describe(), HasSubstr("by hand: met at rank 0's store at 127.0.0.1"));
  EXPECT_THAT(outcomes[3].connector->describe(), HasSubstr("the key file"));
}

TEST_F(Connect, ThePortCanBeUsedAgainAtOnce) {
  for (int round = 0; round < 3; ++round) {
    expect_a_working_world(connect_world(2, [&](int rank) { return by_hand(rank, 2); }));
  }
}

TEST_F(Connect, TcpMethodNeedsNoVariables) {
  const std::string method = fmt::format("tcp://localhost:{}", port_);
  expect_a_working_world(connect_world(3, [&](int rank) { return by_method(rank, 3, method); }));
}

TEST_F(Connect, TcpMethodWorksOverIpv6) {
  const std::string method = fmt::format("tcp://[::1]:{}", port_);
  try {
    const wire::Listener probe(wire::Address::loopback_v6());
  } catch (const RendezvousError& error) {
    GTEST_SKIP() << error.what();
  }
  expect_a_working_world(connect_world(2, [&](int rank) { return by_method(rank, 2, method); }));
}

TEST_F(Connect, ASecretInTheEnvironmentComesFirst) {
  const auto outcomes = connect_world(2, [&](int rank) {
    Caller caller = by_hand(rank, 2);
    caller.environment.set("TUTTI_SECRET", secret_text);
    return caller;
  });
  expect_a_working_world(outcomes);
  EXPECT_THAT(outcomes[1].connector->describe(), HasSubstr("secret from TUTTI_SECRET"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / ".config"));
}

TEST_F(Connect, FileMethodLeavesNoFileBehind) {
  const auto path = folder_.path() / "meeting";
  const std::string method = "file://" + path.string();
  for (int round = 0; round < 3; ++round) {
    expect_a_working_world(connect_world(3, [&](int rank) { return by_method(rank, 3, method); }));
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

TEST_F(Connect, ANoteThatAnEarlierRunLeftDoesNoHarm) {
  const auto path = folder_.path() / "meeting";
  const std::string method = "file://" + path.string();
  const auto leave = [&](const RendezvousRecord& record) { std::ofstream(path) << record.text() << '\n'; };
  const Caller last = by_method(1, 2, method);
  const auto meet_late_root = [&] {
    std::vector<Outcome> outcomes(2);
    std::jthread early([&] { outcomes[1] = connect_as(last); });
    outcomes[0] = connect_as(by_method(0, 2, method));
    early.join();
    expect_a_working_world(outcomes);
  };
  {
    SCOPED_TRACE("nobody listens there any more");
    leave({.where = {.host = "127.0.0.1", .port = port_},
           .nonce = make_nonce(),
           .secret = {},
           .writer = "an earlier run"});
    meet_late_root();
  }
  {
    SCOPED_TRACE("another job of the same user took the port");
    const auto secret = wire::key_file_secret(folder_.path() / ".config/tutti/key");
    const ServedStore other = serve_store(wire::Address::loopback(), {secret}, soon());
    other.store->set(nonce_key, make_nonce(), soon());
    leave({.where = {.host = "127.0.0.1", .port = other.address.port()},
           .nonce = make_nonce(),
           .secret = {},
           .writer = "x"});
    meet_late_root();
  }
  {
    SCOPED_TRACE("somebody with another secret took the port");
    const ServedStore other = serve_store(wire::Address::loopback(), {wire::make_secret()}, soon());
    leave({.where = {.host = "127.0.0.1", .port = other.address.port()},
           .nonce = make_nonce(),
           .secret = {},
           .writer = "x"});
    meet_late_root();
  }
  {
    SCOPED_TRACE("an empty file");
    std::ofstream(path).flush();
    meet_late_root();
  }
}

TEST_F(Connect, AFileThatIsNoNoteIsNotOverwritten) {
  const auto path = folder_.path() / "thesis.tex";
  std::ofstream(path) << "years of work";
  Caller root = by_method(0, 2, "file://" + path.string());
  EXPECT_THAT(connect_as(root).error, HasSubstr("no meeting file of an earlier run"));
  EXPECT_EQ(std::filesystem::file_size(path), 13u);
}

TEST_F(Connect, UnderTuttirunTheLaunchersStoreServesEveryInit) {
  const wire::Secret secret = wire::Secret::from_hex(secret_text);
  const TcpStoreServer server({.secret = secret});
  for (std::uint64_t connects = 0; connects < 2; ++connects) {
    const auto outcomes = connect_world(4, [&](int rank) {
      return Caller{.environment = Environment({{"RANK", fmt::to_string(rank)},
                                                {"WORLD_SIZE", "4"},
                                                {"LOCAL_RANK", fmt::to_string(rank % 2)},
                                                {"LOCAL_WORLD_SIZE", "2"},
                                                {"GROUP_RANK", fmt::to_string(rank / 2)},
                                                {"GROUP_WORLD_SIZE", "2"},
                                                {"TUTTI_STORE", server.address().text()},
                                                {"TUTTI_SECRET", secret_text},
                                                {"TUTTI_JOB", "test"}}),
                    .options = {.timeout = 20s},
                    .earlier_connects = connects};
    });
    expect_a_working_world(outcomes);
    EXPECT_EQ(outcomes[3].connector->place().local_rank, 1);
    EXPECT_EQ(outcomes[3].connector->place().node_rank, 1);
    EXPECT_THAT(outcomes[3].connector->describe(), HasSubstr("tuttirun: met at the launcher's store"));
  }
}

TEST_F(Connect, UnderSlurmWithoutPmiAPortOfTheWindowIsFoundPastOtherPrograms) {
  const auto caller = [&](int rank) {
    return Caller{.environment = Environment({{"SLURM_PROCID", fmt::to_string(rank)},
                                              {"SLURM_STEP_NUM_TASKS", "3"},
                                              {"SLURM_STEP_ID", "0"},
                                              {"SLURM_JOB_ID", fmt::to_string(port_)},
                                              {"SLURM_LOCALID", fmt::to_string(rank / 2)},
                                              {"SLURM_NODEID", fmt::to_string(rank % 2)},
                                              {"SLURM_STEP_NUM_NODES", "2"},
                                              {"SLURM_STEP_NODELIST", "127.0.0.1,elsewhere"},
                                              {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
                                              {"HOME", folder_.path().string()}}),
                  .options = {.timeout = 20s}};
  };
  const auto window = std::get<PortWindow>(detect(caller(0).environment).meeting);
  const auto first = wire::Address::loopback(window.first_port);
  const wire::Listener silent(first);
  const ServedStore other = serve_store(first.with_port(window.first_port + 1), {wire::make_secret()}, soon());
  const auto key = wire::key_file_secret(folder_.path() / ".config/tutti/key");
  const ServedStore another_job = serve_store(first.with_port(window.first_port + 2), {key}, soon());
  another_job.store->set(nonce_key, "cluster/1.0/0", soon());
  const auto outcomes = connect_world(3, caller);
  expect_a_working_world(outcomes);
  EXPECT_EQ(outcomes[2].connector->place().local_rank, 1);
  EXPECT_EQ(outcomes[2].connector->place().local_size, 2);
  EXPECT_EQ(outcomes[1].connector->place().node_rank, 1);
}

TEST_F(Connect, PlacesFollowFromWhoSharesAHost) {
  const std::vector<std::string> hosts = {"b", "a", "b", "c", "b"};
  const auto outcomes = connect_world(5, [&](int rank) {
    Caller caller = by_hand(rank, 5);
    caller.environment.set("TUTTI_HOST_ID", hosts[static_cast<std::size_t>(rank)]);
    caller.environment.set("LOCAL_RANK", "4");  // what the launcher says does not count then
    caller.environment.set("LOCAL_WORLD_SIZE", "5");
    return caller;
  });
  expect_a_working_world(outcomes);
  std::vector<std::string> places;
  for (const Outcome& outcome : outcomes) {
    const Place& p = outcome.connector->place();
    places.push_back(fmt::format("{}/{} on {}/{}", p.local_rank, p.local_size, p.node_rank, p.node_count));
  }
  EXPECT_THAT(places, ElementsAre("0/3 on 0/3", "0/1 on 1/3", "1/3 on 0/3", "0/1 on 2/3", "2/3 on 0/3"));
}

TEST_F(Connect, AloneOpensNothing) {
  const auto open_files = [] {
    const auto entries = std::filesystem::directory_iterator("/proc/self/fd");
    return std::distance(begin(entries), end(entries));
  };
  const auto before = open_files();
  for (const Environment::Variables& variables : {Environment::Variables{},
                                                  {{"RANK", "0"}, {"WORLD_SIZE", "1"}},
                                                  {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}}) {
    const auto outcome = connect_as({.environment = Environment(variables)});
    ASSERT_EQ(outcome.error, "");
    EXPECT_EQ(open_files(), before);
    EXPECT_EQ(outcome.connector->place().size, 1);
    EXPECT_EQ(outcome.connector->secret().size(), 32u);
    outcome.connector->barrier(soon());
    EXPECT_EQ(outcome.connector->broadcast("x", 0, soon()), "x");
    EXPECT_THAT(outcome.connector->exchange("y", soon()), ElementsAre("y"));
    EXPECT_THAT(outcome.connector->describe(), HasSubstr("a group of one"));
  }
}

TEST_F(Connect, CallsOfTheConnectorLeaveNoKeysBehind) {
  const auto outcomes = connect_world(2, [&](int rank) { return by_hand(rank, 2); });
  on_all(outcomes, [](Connector& connector) {
    for (int i = 0; i < 10; ++i) {
      (void)connector.exchange("x", soon());
      (void)connector.broadcast("y", i % 2, soon());
      connector.barrier(soon());
    }
    (void)connector.exchange("x", soon());
  });
  for (int call = 0; call < 28; ++call) {
    for (const char* name : {"0", "1", "count", "result", "value", "readers", "read"}) {
      EXPECT_FALSE(outcomes[0].connector->store()->try_get(fmt::format("connector/{}/{}", call, name), soon()))
          << call << name;
    }
  }
}

TEST_F(Connect, TheServerStaysUntilTheOthersHaveReadTheLastResult) {
  for (int round = 0; round < 50; ++round) {
    auto outcomes = connect_world(4, [&](int rank) { return by_hand(rank, 4); });
    for (const Outcome& outcome : outcomes) ASSERT_EQ(outcome.error, "");
    std::vector<std::jthread> ranks;
    std::atomic<int> failures = 0;
    for (Outcome& outcome : outcomes) {
      ranks.emplace_back([&outcome, &failures, round] {
        try {
          if (round % 2 == 0) outcome.connector->barrier(soon());
          if (round % 2 == 1) (void)outcome.connector->broadcast("x", 0, soon());
        } catch (const Error&) {
          ++failures;
        }
        outcome.connector.reset();
      });
    }
    ranks.clear();
    ASSERT_EQ(failures, 0) << "round " << round;
  }
}

TEST_F(Connect, ARankThatDoesNotComeToABarrierIsNamed) {
  const auto outcomes = connect_world(3, [&](int rank) { return by_hand(rank, 3); });
  for (const Outcome& outcome : outcomes) ASSERT_EQ(outcome.error, "");
  try {
    outcomes[0].connector->barrier(soon(100ms));
    ADD_FAILURE() << "nobody else is there";
  } catch (const Timeout& timeout) {
    EXPECT_THAT(timeout.what(), HasSubstr("rank 0 of 3: barrier"));
    EXPECT_THAT(timeout.what(), HasSubstr("waiting for ranks 1 and 2"));
  }
  EXPECT_THROW((void)outcomes[1].connector->broadcast("", 3, soon()), InvalidArgument);
  EXPECT_THROW((void)outcomes[1].connector->broadcast("", -1, soon()), InvalidArgument);
}

TEST_F(Connect, AForkedChildIsRefusedAndLeavesTheParentsStoreAlone) {
  auto outcomes = connect_world(2, [&](int rank) { return by_hand(rank, 2); });
  for (const Outcome& outcome : outcomes) ASSERT_EQ(outcome.error, "");
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      outcomes[0].connector->barrier(soon());
    } catch (const InvalidArgument&) {
      status = 0;
    }
    outcomes.clear();
    _exit(status);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  expect_a_working_world(outcomes);
}

}  // namespace
}  // namespace tutti::rendezvous
