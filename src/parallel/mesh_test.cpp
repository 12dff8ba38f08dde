// mesh_test.cpp: which ranks come to stand next to each other.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <tutti/error.hpp>
#include <tutti/mesh.hpp>

namespace tutti {
namespace {

using testing::ElementsAre;
using Ints = std::vector<int>;

// How many rows of the last axis have ranks of several nodes.
int torn_rows(const Ints& node_of, const Ints& ranks, int row) {
  int torn = 0;
  for (std::size_t begin = 0; begin < ranks.size(); begin += static_cast<std::size_t>(row)) {
    std::set<int> nodes;
    for (std::size_t i = begin; i < begin + static_cast<std::size_t>(row); ++i) {
      nodes.insert(node_of[static_cast<std::size_t>(ranks[i])]);
    }
    torn += nodes.size() > 1 ? 1 : 0;
  }
  return torn;
}

TEST(ArrangeMesh, keeps_the_order_of_ranks_that_already_lie_well) {
  EXPECT_THAT(arrange_mesh(Ints{0, 0, 0, 0, 1, 1, 1, 1}, Ints{2, 4}), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(arrange_mesh(Ints{0, 0, 0, 0}, Ints{4}), ElementsAre(0, 1, 2, 3));
}

TEST(ArrangeMesh, brings_ranks_of_one_node_together_that_were_dealt_out_in_turn) {
  EXPECT_THAT(arrange_mesh(Ints{0, 1, 0, 1, 0, 1, 0, 1}, Ints{2, 4}), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_THAT(arrange_mesh(Ints{0, 1, 0, 1}, Ints{2, 1, 2}), ElementsAre(0, 2, 1, 3));
}

TEST(ArrangeMesh, tears_as_few_rows_as_unequal_nodes_allow) {
  const Ints node_of = {0, 0, 0, 0, 0, 1, 1, 1};  // 5 and 3: one pair must be torn
  EXPECT_EQ(torn_rows(node_of, arrange_mesh(node_of, Ints{4, 2}), 2), 1);
  const Ints three = {0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2};
  EXPECT_EQ(torn_rows(three, arrange_mesh(three, Ints{6, 2}), 2), 1);
  EXPECT_EQ(torn_rows(three, arrange_mesh(three, Ints{4, 3}), 3), 0);
}

TEST(ArrangeMesh, keeps_the_last_two_axes_together_next) {
  const Ints node_of = {0, 1, 0, 1, 0, 1, 0, 1};
  const Ints ranks = arrange_mesh(node_of, Ints{2, 2, 2});
  EXPECT_EQ(torn_rows(node_of, ranks, 2), 0);
  EXPECT_EQ(torn_rows(node_of, ranks, 4), 0);
}

TEST(ArrangeMesh, names_each_rank_once_whatever_the_nodes) {
  for (const Ints& node_of : {Ints{0, 1, 2, 3, 4, 5}, Ints{0, 0, 1, 2, 2, 2}, Ints{3, 1, 3, 1, 0, 0}}) {
    for (const Ints& sizes : {Ints{6}, Ints{2, 3}, Ints{3, 2}, Ints{1, 6, 1}, Ints{6, 1}}) {
      Ints ranks = arrange_mesh(node_of, sizes);
      std::ranges::sort(ranks);
      ASSERT_THAT(ranks, ElementsAre(0, 1, 2, 3, 4, 5));
    }
  }
}

TEST(ArrangeMesh, refuses_sizes_that_do_not_fit) {
  EXPECT_THROW((void)arrange_mesh(Ints{0, 0, 0}, Ints{2}), InvalidArgument);
  EXPECT_THROW((void)arrange_mesh(Ints{0, 0, 0}, Ints{0}), InvalidArgument);
}

}  // namespace
}  // namespace tutti
