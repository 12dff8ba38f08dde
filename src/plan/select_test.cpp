// select_test.cpp: the choice of algorithm.
// SPDX-License-Identifier: Apache-2.0
#include "plan/select.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tutti/error.hpp>

namespace tutti {
namespace {

Shape shape(Verb verb, std::int64_t bytes, int size) {
  return {.verb = verb, .bytes = bytes, .topology = Topology::on_one_node(size)};
}

TEST(Select, SmallArraysTakeFewRoundsAndLargeOnesFewBytes) {
  EXPECT_EQ(select(shape(Verb::all_reduce, 8, 8), {}).algorithm, Algorithm::recursive_doubling);
  const Choice large = select(shape(Verb::all_reduce, 64 << 20, 8), {});
  const Cost cost = candidates(shape(Verb::all_reduce, 64 << 20, 8), {}).front().cost;
  EXPECT_NE(large.algorithm, Algorithm::recursive_doubling);
  EXPECT_LE(cost.bytes_sent, 2 * (64 << 20));
}

TEST(Select, EveryShapeGetsAnAlgorithmThatServes) {
  for (int v = 0; v < static_cast<int>(Verb::send); ++v) {
    for (const int size : {1, 2, 3, 7, 8, 100, 4096}) {
      for (const std::int64_t bytes : {0, 1, 4096, 1 << 20, 1 << 30}) {
        for (const bool uneven : {false, true}) {
          Shape asked = shape(static_cast<Verb>(v), bytes, size);
          asked.uneven = uneven;
          asked.topology.nodes = size >= 4 ? 2 : 1;
          asked.topology.local_min = asked.topology.local_max = size >= 4 ? size / 2 : size;
          const CatalogRow* row = find_algorithm(asked.verb, select(asked, {}).algorithm);
          ASSERT_NE(row, nullptr);
          EXPECT_TRUE(serves(*row, asked));
        }
      }
    }
  }
}

TEST(Select, AReductionThatIsNotCommutativeGetsAPlanThatKeepsTheOrder) {
  for (const Verb verb : {Verb::all_reduce, Verb::reduce, Verb::reduce_scatter, Verb::scan, Verb::exscan}) {
    for (const int size : {2, 3, 8, 100}) {
      for (const std::int64_t bytes : {1, 4096, 1 << 20, 1 << 30}) {
        Shape asked = shape(verb, bytes, size);
        asked.in_rank_order = true;
        const CatalogRow* row = find_algorithm(verb, select(asked, {}).algorithm);
        ASSERT_NE(row, nullptr) << name_of(verb);
        EXPECT_TRUE(row->in_rank_order) << name_of(verb) << " by " << name_of(row->algorithm);
      }
    }
  }
  EXPECT_THROW(
      (void)make_plan(
          {.verb = Verb::all_reduce, .algorithm = Algorithm::ring, .size = 3, .count = 9, .in_rank_order = true}),
      InvalidArgument);
}

TEST(Select, AnUnevenAllToAllIsAlwaysPairwise) {
  Shape asked = shape(Verb::all_to_all, 8, 64);
  asked.uneven = true;
  EXPECT_EQ(select(asked, {}).algorithm, Algorithm::pairwise);
}

TEST(Select, TwoLevelsAreTakenWhereNodesAreFarApart) {
  Shape asked{
      .verb = Verb::all_reduce, .bytes = 1 << 20, .topology = {.size = 32, .nodes = 4, .local_min = 8, .local_max = 8}};
  EXPECT_EQ(select(asked, {}).algorithm, Algorithm::hierarchical);
  asked.topology = Topology::on_one_node(32);
  EXPECT_NE(select(asked, {}).algorithm, Algorithm::hierarchical);
}

TEST(Select, LongBlocksBetweenHostsGoAroundInPiecesInsteadOfCrowdingTheirReceivers) {
  for (const int hosts : {4, 8, 32}) {
    Shape asked{.verb = Verb::all_gather,
                .bytes = 64 << 20,
                .topology = {.size = hosts, .nodes = hosts, .local_min = 1, .local_max = 1}};
    const Choice choice = select(asked, {});
    EXPECT_EQ(choice.algorithm, Algorithm::ring) << hosts;
    EXPECT_GE(asked.bytes / hosts / std::max<std::int64_t>(choice.segment_bytes, 1), 2)
        << "of one piece each round waits";
    asked.bytes = 4096;
    EXPECT_NE(select(asked, {}).algorithm, Algorithm::ring) << hosts;
  }
  for (const int hosts : {4, 8}) {
    const Shape exchange{.verb = Verb::all_to_all,
                         .bytes = 64 << 20,
                         .topology = {.size = hosts, .nodes = hosts, .local_min = 1, .local_max = 1}};
    EXPECT_EQ(select(exchange, {}).algorithm, Algorithm::pairwise) << hosts;
  }
}

TEST(Select, AUsersRowGoesBeforeTheModelWhereItFits) {
  const Table table{.rows = {{.verb = Verb::all_reduce,
                              .ranks_max = 8,
                              .bytes_min = 100,
                              .choice = {.algorithm = Algorithm::ring, .segment_bytes = 64}}}};
  EXPECT_EQ(select(shape(Verb::all_reduce, 100, 8), table),
            (Choice{.algorithm = Algorithm::ring, .segment_bytes = 64}));
  EXPECT_EQ(select(shape(Verb::all_reduce, 99, 8), table), select(shape(Verb::all_reduce, 99, 8), {}));
  EXPECT_EQ(select(shape(Verb::all_reduce, 100, 9), table), select(shape(Verb::all_reduce, 100, 9), {}));
}

TEST(Select, SegmentsAreWholeElements) {
  EXPECT_EQ((Choice{.algorithm = Algorithm::ring, .segment_bytes = 4096}.segment(16)), 256);
  EXPECT_EQ((Choice{.algorithm = Algorithm::ring, .segment_bytes = 8}.segment(16)), 1);
  EXPECT_EQ((Choice{.algorithm = Algorithm::ring}.segment(16)), 0);
}

TEST(Table, SurvivesTheWayThroughText) {
  Table table{.rows = {{.verb = Verb::broadcast,
                        .ranks_min = 3,
                        .bytes_max = 77,
                        .choice = {.algorithm = Algorithm::chain, .segment_bytes = 5}}}};
  table.model.between.latency = 1.25e-6;
  table.shared.chunk_bytes = 64 << 10;
  EXPECT_EQ(table_from_text(to_text(table)), table);
  EXPECT_EQ(table_from_text("{}"), Table{});
}

TEST(Table, ATextThatIsNotATableIsRefusedWithTheReason) {
  const auto message = [](const char* text) {
    try {
      table_from_text(text);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message("{"), testing::HasSubstr("parse error"));
  EXPECT_EQ(message(R"({"rows": [{"verb": "scan", "algorithm": "ring"}]})"),
            "selection table, row 1: the algorithm ring does not serve scan");
  EXPECT_THAT(message(R"({"rows": [{"verb": "scan"}]})"), testing::HasSubstr("row 1"));
  EXPECT_THAT(message(R"({"model": {"overhead": -1}})"), testing::HasSubstr("overhead must not be negative"));
  EXPECT_THAT(
      message(R"({"shared": {"chunk": 1}})"),
      testing::AllOf(testing::HasSubstr("shared memory has no limit \"chunk\"; it has inline_bytes_max, slot_bytes, "),
                     testing::HasSubstr("tutti tune")));
  EXPECT_EQ(message(R"({"shared": {"slot_bytes": 12}})"),
            "selection table: slot_bytes is 12; it must be a whole number, at least 4096 and at most 67108864");
  EXPECT_EQ(message(R"({"shared": {"read_bytes_max": 1.5}})"),
            "selection table: read_bytes_max is 1.5; it must be a whole number, at least 0");
  EXPECT_THAT(message(R"({"model": 3})"), testing::HasSubstr("selection table"));
}

}  // namespace
}  // namespace tutti
