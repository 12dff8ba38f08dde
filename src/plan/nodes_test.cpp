// nodes_test.cpp: which ranks share a node, in a group and among some of its ranks.
// SPDX-License-Identifier: Apache-2.0
#include "plan/nodes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Spec group_on(std::vector<int> node_of) {
  return {.verb = Verb::all_reduce, .size = static_cast<int>(node_of.size()), .node_of = std::move(node_of)};
}

TEST(Nodes, ThereAreAsManyLanesAsTheSmallestNodeHasRanks) {
  const Nodes nodes(group_on({7, 7, 7, 3, 3}));
  EXPECT_EQ(nodes.lanes, 2);
  EXPECT_THAT(nodes.lane(0), ElementsAre(0, 3));
  EXPECT_THAT(nodes.lane(1), ElementsAre(1, 4));
}

TEST(Nodes, RanksOfALaneAreOnNodesOfTheirOwnAndNeighboursOnNone) {
  const Spec group = group_on({7, 7, 3, 3});
  const Nodes nodes(group);
  const auto nodes_among = [](const Spec& whole, std::vector<int> members) {
    return spec_of(whole, {.verb = Verb::barrier, .members = std::move(members)}).node_of;
  };
  EXPECT_THAT(nodes_among(group, nodes.lane(1)), ElementsAre(7, 3));
  EXPECT_THAT(nodes_among(group, nodes.members[1]), IsEmpty());
  EXPECT_THAT(nodes_among(group, {0, 1, 3}), ElementsAre(7, 7, 3));
  EXPECT_THAT(nodes_among(group_on({}), {}), IsEmpty()) << "where all share a node, nobody says so";
}

TEST(Nodes, APartAsksForItsMembersInTheirOrder) {
  Spec group = group_on({7, 7, 3, 3});
  group.rank = 3;
  const SubCollective call{.verb = Verb::gather, .members = {1, 3}, .root = 1, .counts = {20, 5}};
  const Spec part = spec_of(group, call);
  EXPECT_EQ(part.verb, Verb::gather);
  EXPECT_EQ(part.rank, 1);
  EXPECT_EQ(part.size, 2);
  EXPECT_EQ(part.root, 1);
  EXPECT_THAT(part.counts, ElementsAre(20, 5));
  EXPECT_EQ(own_block(part), 20);
}

}  // namespace
}  // namespace tutti
