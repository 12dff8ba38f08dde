// suggest_test.cpp: slips of the finger find what was meant, strange words find nothing.
// SPDX-License-Identifier: Apache-2.0
#include "launch/suggest.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tutti::launch {
namespace {

const std::vector<std::string> known = {"--quiet", "--timeout", "--tee", "--nproc-per-node", "--nnodes", "-n", "-B"};

TEST(Suggest, CountsInsertionsOmissionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("quiet", "queit"), 1);
  EXPECT_EQ(edit_distance("same", "same"), 0);
}

TEST(Suggest, FindsTheOptionThatWasMeant) {
  EXPECT_EQ(nearest("--quite", known), "--quiet");
  EXPECT_EQ(nearest("--timout", known), "--timeout");
  EXPECT_EQ(nearest("--nproc-per-nod", known), "--nproc-per-node");
  EXPECT_EQ(nearest("-b", known), "-B");
}

TEST(Suggest, TakesTheBeginningOfALongWord) { EXPECT_EQ(nearest("--nproc", known), "--nproc-per-node"); }

TEST(Suggest, SaysNothingAboutAWordThatIsFarFromAll) {
  EXPECT_EQ(nearest("--frobnicate", known), "");
  EXPECT_EQ(did_you_mean("--frobnicate", known), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Suggest, AsksWhetherThatWasMeant) { EXPECT_EQ(did_you_mean("--queit", known), "; did you mean --quiet?"); }

}  // namespace
}  // namespace tutti::launch
