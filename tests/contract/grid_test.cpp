// grid_test.cpp: every verb × every dtype × every reduction × lengths × in place or not × groups, against the scalar reference.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/hash.hpp"
#include "case_grid.hpp"
#include "world_param.hpp"

namespace tutti::contract {
namespace {

class EveryCall : public InWorld {};
class SomeCalls : public InWorld {};
class LargeCalls : public InWorld {};

constexpr std::int64_t small_lengths[] = {0, 1, 7};
constexpr std::int64_t soak_lengths[] = {0, 1, 7, 1000, 20011};
constexpr std::int64_t some_lengths[] = {0, 1, 2, 7, 64, 333, 1000};
// Past what is sent eagerly, past a chunk and past a segment of either transport; odd, so that nothing divides evenly.
constexpr std::int64_t large_lengths[] = {20011, 70003};

std::uint64_t seed_for(const WorldParam& param) { return scramble(seed_of_run() + std::uint64_t(param.size)); }

void fail(const std::string& text) { ADD_FAILURE() << text << "\nreplay with TUTTI_SEED=" << seed_of_run(); }

TEST_P(EveryCall, OfFewElementsGivesWhatTheReferenceGives) {
  auto cases =
      lot(every_call(is_soak() ? std::span<const std::int64_t>(soak_lengths) : small_lengths, seed_for(GetParam())),
          seed_for(GetParam()));
  if (is_soak()) {  // in every group, not only in the world
    for (std::size_t i = 0, all = cases.size(); i < 3 * all; ++i) {
      cases.push_back({static_cast<GroupKind>(1 + i / all), cases[i % all].call});
    }
  }
  on_every_rank([&](Group& world) { run_calls(world, cases, fail); });
}

TEST_P(SomeCalls, OfAnyShapeAndGroupGiveWhatTheReferenceGives) {
  const auto cases = some_calls(lot(1200), some_lengths, seed_for(GetParam()));
  on_every_rank([&](Group& world) { run_calls(world, cases, fail); });
}

TEST_P(LargeCalls, GiveWhatTheReferenceGives) {
  const auto cases = some_calls(lot(24), large_lengths, seed_for(GetParam()));
  on_every_rank([&](Group& world) { run_calls(world, cases, fail); });
}

INSTANTIATE_TEST_SUITE_P(Contract, EveryCall,
                         testing::ValuesIn(worlds(is_soak() ? std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9}
                                                            : std::vector{1, 2, 3, 4})),
                         world_name);
INSTANTIATE_TEST_SUITE_P(Contract, SomeCalls, testing::ValuesIn(worlds({1, 2, 3, 4, 5, 6, 7, 8, 9})), world_name);
INSTANTIATE_TEST_SUITE_P(Extended, SomeCalls, testing::ValuesIn(extended_worlds({1, 2, 3, 4})), world_name);
INSTANTIATE_TEST_SUITE_P(Contract, LargeCalls, testing::ValuesIn(worlds({2, 3, 5, 8})), world_name);

}  // namespace
}  // namespace tutti::contract
