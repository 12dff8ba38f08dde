// algorithms_test.cpp: every algorithm of the catalog, forced by a table, gives the reference's result and the same bits.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <mutex>

#include "base/random.hpp"
#include "case_grid.hpp"
#include "plan/catalog.hpp"
#include "plan/select.hpp"
#include "world.hpp"

namespace tutti::contract {
namespace {

/// A table with one row: this algorithm for its verb, at every size.
Table table_that_forces(const CatalogRow& row, std::int64_t segment_bytes) {
  return {.rows = {{.verb = row.verb,
                    .choice = {.algorithm = row.algorithm, .segment_bytes = row.segments ? segment_bytes : 0}}}};
}

std::vector<GroupCase> cases_of(Verb verb, std::uint64_t seed) {
  std::vector<GroupCase> cases;
  Random random(seed);
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::int16}) {
    for (const std::int64_t length : {0, 1, 7, 3001}) {
      for (const Op& op : {Op::sum, Op::mean}) {
        for (const bool in_place : {false, true}) {
          for (const Sizing sizing : {Sizing::even, Sizing::given}) {
            Case call{.verb = verb, .dtype = dtype, .op = op, .length = length, .in_place = in_place, .sizing = sizing};
            call.root = static_cast<std::uint32_t>(random.below(64));
            call.seed = random.next();
            if (makes_sense(call) && (reduces(verb) || op == Op::sum)) cases.push_back({GroupKind::world, call});
          }
        }
      }
    }
  }
  return cases;
}

void fail(const std::string& text) { ADD_FAILURE() << text << "\nreplay with TUTTI_SEED=" << seed_of_run(); }

class EveryAlgorithm : public testing::TestWithParam<CatalogRow> {
 protected:
  void run_in(WorldKind kind, WorldOptions options, std::int64_t segment_bytes) {
    const Table table = table_that_forces(GetParam(), segment_bytes);
    std::vector<int> node_of;
    for (int rank = 0; rank < options.size; ++rank) node_of.push_back(node_of_rank(options, rank));
    const tutti::Shape shape{.verb = GetParam().verb, .bytes = 4000, .topology = Topology::of(options.size, node_of)};
    if (!serves(GetParam(), shape)) return;  // two levels need two nodes
    ASSERT_EQ(select(shape, table).algorithm, GetParam().algorithm);
    options.table = to_text(table);
    options.seed = seed_of_run();
    const auto cases = lot(cases_of(GetParam().verb, seed_of_run()), seed_of_run());
    make_world(kind, options)->run([&](Group& world) { run_calls(world, cases, fail); });
  }
};

TEST_P(EveryAlgorithm, GivesWhatTheReferenceGivesWhateverTheNumberOfRanks) {
  for (const int size : {2, 3, 5, 8}) run_in(WorldKind::simulated, {.size = size}, 512);
}

TEST_P(EveryAlgorithm, GivesWhatTheReferenceGivesOnSeveralNodes) {
  run_in(WorldKind::simulated, {.size = 4, .ranks_per_node = 2}, 0);
  run_in(WorldKind::simulated, {.size = 7, .ranks_per_node = 3}, 1024);
}

TEST_P(EveryAlgorithm, GivesWhatTheReferenceGivesOverTcp) {
  run_in(WorldKind::tcp, {.size = 3}, 512);
  run_in(WorldKind::tcp, {.size = 5, .ranks_per_node = 2}, 1024);
  run_in(WorldKind::shm, {.size = 7, .ranks_per_node = 3}, 1024);
}

std::string row_name(const testing::TestParamInfo<CatalogRow>& info) {
  return fmt::format("{}_{}", tutti::name_of(info.param.verb), tutti::name_of(info.param.algorithm));
}

INSTANTIATE_TEST_SUITE_P(Contract, EveryAlgorithm, testing::ValuesIn(catalog().begin(), catalog().end()), row_name);

class SameBits : public EveryAlgorithm {
 protected:
  /// The all_reduce of numbers whose sum depends on the order of the additions: what each rank got, one after the other.
  template <class T>
  std::vector<std::vector<T>> reduced(WorldKind kind, WorldOptions options) {
    std::vector<std::vector<T>> results(static_cast<std::size_t>(options.size));
    options.table = to_text(table_that_forces(GetParam(), 512));
    make_world(kind, options)->run([&](Group& world) {
      Random random(7 + static_cast<std::uint64_t>(world.rank()));
      std::vector<T>& mine = results[static_cast<std::size_t>(world.rank())];
      for (int i = 0; i < 4001; ++i)
        mine.push_back(static_cast<T>(std::ldexp(random.unit() - 0.5, static_cast<int>(random.below(30)))));
      world.all_reduce(mine);
    });
    return results;
  }
};

TEST_P(SameBits, OnAllRanksAndInEveryRun) {
  for (const int size : {2, 3, 5, 8}) {
    const WorldOptions options{.size = size, .ranks_per_node = 2, .seed = 1};
    const auto once = reduced<float>(WorldKind::simulated, options);
    for (const auto& result : once) EXPECT_EQ(result, once[0]) << size << " ranks";
    const WorldOptions other{.size = size, .ranks_per_node = 2, .seed = 2};
    EXPECT_EQ(reduced<float>(WorldKind::simulated, other)[0], once[0]) << "another timing gave other bits";
    const auto doubles = reduced<double>(WorldKind::simulated, options);
    for (const auto& result : doubles) EXPECT_EQ(result, doubles[0]) << size << " ranks";
  }
  const WorldOptions options{.size = 3, .ranks_per_node = 2};
  const auto over_tcp = reduced<float>(WorldKind::tcp, options);
  EXPECT_EQ(over_tcp, reduced<float>(WorldKind::simulated, options)) << "tcp and simulated gave other bits";
  EXPECT_EQ(over_tcp, reduced<float>(WorldKind::tcp, options));
}

INSTANTIATE_TEST_SUITE_P(Contract, SameBits,
                         testing::ValuesIn(catalog(Verb::all_reduce).begin(), catalog(Verb::all_reduce).end()),
                         row_name);

}  // namespace
}  // namespace tutti::contract
