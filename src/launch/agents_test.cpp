// agents_test.cpp: the small parts of a job on several hosts: frames, orders, the tree, remote shells, the network.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "launch/agent_frame.hpp"
#include "launch/hosts_job.hpp"
#include "launch/job_order.hpp"
#include "launch/reach.hpp"
#include "launch/remote_shell.hpp"

namespace tutti::launch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class FramePipeTest : public testing::Test {
 protected:
  FramePipeTest() {
    int there[2], back[2];
    EXPECT_EQ(pipe(there), 0);
    EXPECT_EQ(pipe(back), 0);
    near_ = FramePipe(UniqueFd(back[0]), UniqueFd(there[1]));
    far_ = FramePipe(UniqueFd(there[0]), UniqueFd(back[1]));
  }

  FramePipe near_, far_;
};

TEST_F(FramePipeTest, CarriesFramesInOrderHoweverLargeTheyAre) {
  const std::vector<std::byte> large(300000, std::byte{7});
  near_.send({.host = 3, .kind = FrameKind::input, .body = large});
  near_.send({.kind = FrameKind::rank_ended, .body = numbers({1, -2, 3})});
  std::vector<Frame> frames;
  while (frames.size() < 2) {
    ASSERT_TRUE(near_.flush());
    ASSERT_TRUE(far_.receive());
    while (auto frame = far_.next()) frames.push_back(*frame);
  }
  EXPECT_EQ(frames[0].host, 3U);
  EXPECT_EQ(frames[0].body, large);
  EXPECT_EQ(frames[1].host, every_host);
  EXPECT_THAT(read_numbers(frames[1], 3), ElementsAre(1, -2, 3));
  EXPECT_THROW(read_numbers(frames[1], 2), MalformedMessage);
}

TEST_F(FramePipeTest, IgnoresWhatAShellPrintsBeforeTheBanner) {
  far_.expect_banner();
  const std::string text = std::string("Welcome!\nLast login: today\n") + std::string(agent_banner) + "1.2 /bin/x\n";
  ASSERT_EQ(write(near_.out(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  near_.send({.kind = FrameKind::gone});
  ASSERT_TRUE(far_.receive());
  EXPECT_EQ(far_.banner(), "1.2 /bin/x");
  EXPECT_EQ(far_.next()->kind, FrameKind::gone);
}

TEST_F(FramePipeTest, IsClosedByALengthThatCannotBe) {
  const std::string noise(64, '\xff');
  ASSERT_EQ(write(near_.out(), noise.data(), noise.size()), 64);
  ASSERT_TRUE(far_.receive());
  EXPECT_FALSE(far_.next());
  EXPECT_FALSE(far_.receive());
}

TEST_F(FramePipeTest, NoticesThatTheOtherSideIsGone) {
  near_ = FramePipe();
  EXPECT_FALSE(far_.receive());
}

TEST(HostTree, ReachesEveryHostOnceAndAlongTheTree) {
  for (const int hosts : {1, 2, 3, 16, 17, 40, 300}) {
    for (const int fan_out : {1, 2, 16}) {
      const HostTree tree{.hosts = hosts, .fan_out = fan_out};
      std::vector<int> started(static_cast<std::size_t>(hosts) + 1, 0);
      for (int node = 0; node <= hosts; ++node) {
        for (const int child : tree.children_of(node)) {
          ++started[static_cast<std::size_t>(child)];
          EXPECT_EQ(tree.parent_of(child), node);
        }
      }
      EXPECT_THAT(std::vector<int>(started.begin() + 1, started.end()), testing::Each(1));
      for (int target = 1; target <= hosts; ++target) {
        int node = 0;
        while (node != target) {
          node = tree.next_hop(node, target);
          ASSERT_GT(node, 0);
        }
        EXPECT_EQ(tree.next_hop(target, target), -1);
      }
    }
  }
}

TEST(JobOrder, ArrivesAsItWasSent) {
  JobOrder order{.hosts = {{"a", 2}, {"me@fd00::1", 0}},
                 .fan_out = 3,
                 .silence = std::chrono::seconds(7),
                 .start_timeout = std::chrono::seconds(9),
                 .shell = {"ssh", "-p", "22"},
                 .tuttirun = "/t",
                 .job = "j",
                 .secret = "s",
                 .folder = "/f",
                 .environment = {{"A", "1\n2"}, {"B", ""}}};
  order.options.program = "train.py";
  order.options.arguments = {"--lr", ""};
  order.options.variables = {{"X", "y"}};
  order.options.binding = Binding::core;
  order.options.python = "/py";
  const auto bytes = encode(order);
  const JobOrder copy = decode_job_order(bytes);
  EXPECT_EQ(copy.hosts, order.hosts);
  EXPECT_EQ(copy.silence, order.silence);
  EXPECT_EQ(copy.shell, order.shell);
  EXPECT_EQ(copy.environment, order.environment);
  EXPECT_EQ(copy.options.arguments, order.options.arguments);
  EXPECT_EQ(copy.options.variables, order.options.variables);
  EXPECT_EQ(copy.options.binding, Binding::core);
  EXPECT_EQ(copy.options.python, "/py");
  EXPECT_EQ(encode(copy), bytes);
  for (std::size_t cut = 0; cut < bytes.size(); cut += 7)
    EXPECT_THROW(decode_job_order(std::span(bytes).first(cut)), MalformedMessage);
}

TEST(RemoteShell, SplitsWordsAsAShellDoes) {
  EXPECT_THAT(split_shell_words("--ssh", R"(ssh -p 22  -o 'A B' "c\"d" e\ f '')"),
              ElementsAre("ssh", "-p", "22", "-o", "A B", "c\"d", "e f", ""));
  EXPECT_THROW(split_shell_words("--ssh", "ssh 'x"), UsageError);
  EXPECT_THROW(split_shell_words("--ssh", " "), UsageError);
}

TEST(RemoteShell, AsksSshForNothingAndOthersForWhatTheyWereGiven) {
  const auto by_ssh = remote_command({"/usr/bin/ssh", "-p", "22"}, "a", "/opt/it's/tuttirun");
  EXPECT_THAT(by_ssh, testing::Contains("BatchMode=yes"));
  EXPECT_EQ(*(by_ssh.end() - 2), "a");
  EXPECT_THAT(by_ssh.back(), AllOf(HasSubstr("exec /bin/sh -c "), HasSubstr("--agent")));
  EXPECT_EQ(remote_command({"rsh"}, "a", "t").size(), 3U);
}

TEST(RemoteShell, ExplainsWhatWentWrongAndWhatToTry) {
  EXPECT_THAT(
      explain_end(
          {.command = "ssh", .host = "a", .errors = "root@a: Permission denied (publickey).\r\n", .status = 255 << 8}),
      AllOf(HasSubstr("refuses the key"), HasSubstr("ssh-copy-id a"), Not(HasSubstr("\r"))));
  EXPECT_THAT(explain_end({.command = "ssh", .host = "a", .status = 127 << 8, .tuttirun = "/t"}),
              HasSubstr("there is no tuttirun, neither /t nor in PATH"));
  EXPECT_EQ(explain_end({.command = "rsh", .host = "a", .errors = "what?\n", .status = 3 << 8}),
            "rsh ended with status 3: what?");
}

TEST(HostVariables, StayOnTheirHost) {
  for (const char* name : {"HOME", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "HOSTNAME"}) EXPECT_TRUE(belongs_to_host(name));
  for (const char* name : {"PATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "HOMEPAGE"}) EXPECT_FALSE(belongs_to_host(name));
}

wire::Interface interface(const char* name, const char* address) {
  return {.name = name, .address = *wire::Address::from_numeric(address, 0)};
}

TEST(Reach, TriesNetworksThatLeadOutOfTheMachineFirst) {
  const std::vector<wire::Interface> interfaces = {interface("lo", "127.0.0.1"), interface("docker0", "172.17.0.1"),
                                                   interface("eth0", "fd00::1"), interface("eth0", "fe80::1"),
                                                   interface("eth1", "10.0.0.1")};
  std::vector<std::string> order;
  for (const wire::Address& address : candidate_addresses(interfaces, "")) order.push_back(address.host());
  EXPECT_THAT(order, ElementsAre("10.0.0.1", "fd00::1", "172.17.0.1", "127.0.0.1"));
  EXPECT_EQ(candidate_addresses(interfaces, "docker0").at(0).host(), "172.17.0.1");
}

TEST(Reach, ChoosesForEachHostAnAddressThatAllOthersReach) {
  const std::vector<std::string> names = {"a", "b", "c"};
  const ReachTable table = {
      {.addresses = {"10.0.0.1:1", "10.1.0.1:1"}}, {.addresses = {"10.0.0.2:1"}}, {.addresses = {"[fd00::3]:1"}}};
  const Reach own{.answered = {true, true}};
  std::vector<ReachReport> reports = {{own, {.answered = {true}}, {.answered = {true}}},
                                      {{.answered = {true, true}}, own, {.answered = {true}}},
                                      {{.answered = {false, true}}, {.answered = {true}}, own}};
  std::vector<std::string> chosen;
  for (const wire::HostPort& where : choose_addresses(names, table, reports)) chosen.push_back(where.host);
  EXPECT_THAT(chosen, ElementsAre("10.1.0.1", "10.0.0.2", "fd00::3"));

  reports[2][1] = {.answered = {false}, .problem = "nothing answered"};
  try {
    choose_addresses(names, table, reports);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("host c does not reach host b"), HasSubstr("10.0.0.2:1: nothing answered")));
  }
}

TEST(Reach, OneListenerAnswersAndAnotherTokenDoesNotCount) {
  ReachListeners listeners({wire::Address::loopback()});
  const HostFacts good{.token = listeners.token(), .addresses = listeners.addresses()};
  HostFacts wrong = good;
  wrong.token.assign(token_bytes, 'x');
  ReachProbe probe({{}, good, wrong}, 0, std::chrono::steady_clock::now() + std::chrono::seconds(60));
  while (!probe.is_done()) {
    listeners.serve();
    probe.serve();
  }
  EXPECT_TRUE(probe.report()[1].answered[0]);
  EXPECT_FALSE(probe.report()[2].answered[0]);
  EXPECT_EQ(probe.report()[2].problem, "another host answered");
}

}  // namespace
}  // namespace tutti::launch
