// nodelist_test.cpp: Slurm's short forms, good and bad.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/nodelist.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tutti/error.hpp>

namespace tutti::rendezvous {
namespace {

using testing::ElementsAre;

TEST(Nodelist, ExpandsRangesInTheOrderWritten) {
  EXPECT_THAT(expand_nodelist("a"), ElementsAre("a"));
  EXPECT_THAT(expand_nodelist("a[1-3,7],b"), ElementsAre("a1", "a2", "a3", "a7", "b"));
  EXPECT_THAT(expand_nodelist("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(expand_nodelist("r[0-1]n[1-2]x"), ElementsAre("r0n1x", "r0n2x", "r1n1x", "r1n2x"));
  EXPECT_THAT(expand_nodelist("b,a[2]"), ElementsAre("b", "a2"));
  EXPECT_THAT(expand_nodelist("node-7.example"), ElementsAre("node-7.example"));
}

TEST(Nodelist, RefusesWhatIsNoList) {
  for (const char* text : {"", ",", "a,", "a[1-", "a[", "a]", "a[[1]]", "a[]", "a[x]", "a[3-1]", "a[1-2-3]", "a[-1]",
                           "a[0-99999999]", "a[0-1999][0-1999]"}) {
    EXPECT_THROW((void)expand_nodelist(text), InvalidArgument) << text;
  }
}

TEST(Nodelist, FindsTheTasksOfANode) {
  EXPECT_EQ(tasks_on_node("4", 0), 4);
  EXPECT_EQ(tasks_on_node("4(x2),3", 1), 4);
  EXPECT_EQ(tasks_on_node("4(x2),3", 2), 3);
  EXPECT_EQ(tasks_on_node("1,2,3", 1), 2);
  for (const char* text : {"", "4(x2", "x", "4(x)", "0", "-1"}) {
    EXPECT_THROW((void)tasks_on_node(text, 0), InvalidArgument) << text;
  }
  EXPECT_THROW((void)tasks_on_node("4(x2),3", 3), InvalidArgument);
}

}  // namespace
}  // namespace tutti::rendezvous
