// hosts_test.cpp: lists of hosts and hostfiles, and the mistakes people make in them.
// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/options.hpp"

namespace tutti::launch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Action>
std::string complaint(Action action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(accepted)";
}

std::string list_complaint(std::string_view text) {
  return complaint([&] { parse_host_list(text); });
}

std::string file_complaint(std::string_view text) {
  return complaint([&] { parse_hostfile(text, "hosts.txt"); });
}

TEST(HostList, ReadsNamesUsersAddressesAndSlots) {
  EXPECT_THAT(parse_host_list("a:8,me@b,10.0.0.1:2,[fd00::1]:4,fd00::2,me@[fd00::3]"),
              ElementsAre(Host{"a", 8}, Host{"me@b", 0}, Host{"10.0.0.1", 2}, Host{"fd00::1", 4}, Host{"fd00::2", 0},
                          Host{"me@fd00::3", 0}));
}

TEST(HostList, AddsTheSlotsOfAHostThatIsNamedAgain) {
  EXPECT_THAT(parse_host_list("a,a,b:2,a:3"), ElementsAre(Host{"a", 5}, Host{"b", 2}));
}

TEST(HostList, RefusesWhatIsNoHost) {
  EXPECT_THAT(list_complaint("a,,b"), HasSubstr("missing"));
  EXPECT_THAT(list_complaint("a:0"), HasSubstr("slots are a number from 1"));
  EXPECT_THAT(list_complaint("a:many"), HasSubstr("not \"many\""));
  EXPECT_THAT(list_complaint("-oProxyCommand=x"), HasSubstr("no name of a host"));
  EXPECT_THAT(list_complaint("me@-x"), HasSubstr("no name of a host"));
  EXPECT_THAT(list_complaint("a;rm"), HasSubstr("no name of a host"));
  EXPECT_THAT(list_complaint("[fd00::1]8"), HasSubstr("[ADDRESS]:SLOTS"));
}

TEST(Hostfile, ReadsOpenMpisDeepSpeedsAndMpichsForms) {
  EXPECT_THAT(
      parse_hostfile("# cluster\nnode-a slots=8 max_slots=16\n\n  node-b slots=4 # half of it\nnode-c:2\nnode-d",
                     "hosts.txt"),
      ElementsAre(Host{"node-a", 8}, Host{"node-b", 4}, Host{"node-c", 2}, Host{"node-d", 0}));
}

TEST(Hostfile, SaysWhichLineAndWordIsWrong) {
  EXPECT_THAT(file_complaint("a slots=2\nb slot=2\n"),
              AllOf(HasSubstr("hosts.txt, line 2"), HasSubstr("\"slot=2\""), HasSubstr("did you mean slots=N?")));
  EXPECT_THAT(file_complaint("a gpus=2"), AllOf(HasSubstr("line 1"), HasSubstr("NAME slots=N")));
  EXPECT_THAT(file_complaint("a\na slots=2"), AllOf(HasSubstr("line 2"), HasSubstr("twice")));
  EXPECT_THAT(file_complaint("a:2 slots=2"), HasSubstr("twice"));
  EXPECT_THAT(file_complaint("a slots=-1"), HasSubstr("not \"-1\""));
  EXPECT_THAT(file_complaint("# nothing\n"), HasSubstr("no host in it"));
  EXPECT_THAT(complaint([] { read_hostfile("/nowhere/hosts"); }),
              AllOf(HasSubstr("/nowhere/hosts"), HasSubstr("No such")));
}

TEST(Hosts, RanksPerHostOverrideSlotsUnlessThereAreFewer) {
  std::vector<Host> hosts = {{"a", 8}, {"b", 0}};
  deal_ranks(hosts, 4);
  EXPECT_THAT(hosts, ElementsAre(Host{"a", 4}, Host{"b", 4}));
  EXPECT_THAT(complaint([&] { deal_ranks(hosts, 5); }), HasSubstr("host a has 4 slots"));
}

}  // namespace
}  // namespace tutti::launch
