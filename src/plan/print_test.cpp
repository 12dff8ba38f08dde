// print_test.cpp: a plan as text, and the names of algorithms.
// SPDX-License-Identifier: Apache-2.0
#include "plan/print.hpp"

#include <gtest/gtest.h>

#include <tutti/error.hpp>

#include "plan/catalog.hpp"

namespace tutti {
namespace {

TEST(Print, ARingAllReduceReadsLikeItsDescription) {
  EXPECT_EQ(
      to_text(make_plan(
          {.verb = Verb::all_reduce, .algorithm = Algorithm::ring, .rank = 0, .size = 2, .count = 5, .finish = true})),
      "all_reduce by ring, rank 0 of 2, count 5: 6 steps, scratch 3\n"
      "   0  send input[3, 5) to 1 as #0\n"
      "   1  recv scratch[0, 3) from 1 as #0\n"
      "   2  reduce output[0, 3) = scratch[0, 3) ⊕ input[0, 3)  after 1\n"
      "   3  finish output[0, 3)  after 2\n"
      "   4  send output[0, 3) to 1 as #1  after 3\n"
      "   5  recv output[3, 5) from 1 as #1\n");
}

TEST(Print, ATwoLevelBroadcastShowsItsParts) {
  EXPECT_EQ(to_text(make_plan({.verb = Verb::broadcast,
                               .algorithm = Algorithm::hierarchical,
                               .rank = 2,
                               .size = 4,
                               .root = 0,
                               .count = 4,
                               .node_of = {0, 0, 1, 1}})),
            "broadcast by hierarchical, rank 2 of 4, root 0, count 4: 2 steps, scratch 0\n"
            "   0  call broadcast on ranks 0 2, root 0, output[0, 2) = input[0, 0)\n"
            "   1  call all_gather on ranks 2 3, output[0, 4) = output[0, 2)  after 0\n");
}

TEST(Names, OfAlgorithmsGoBothWays) {
  for (int i = 0; i <= static_cast<int>(Algorithm::hierarchical); ++i) {
    EXPECT_EQ(algorithm_from_name(name_of(static_cast<Algorithm>(i))), static_cast<Algorithm>(i));
  }
  EXPECT_THROW(algorithm_from_name("star"), InvalidArgument);
}

}  // namespace
}  // namespace tutti
