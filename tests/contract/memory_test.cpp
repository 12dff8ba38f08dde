// memory_test.cpp: shared memory is reused, whatever became of the groups it was used in.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "world.hpp"

namespace tutti::contract {
namespace {

// Groups of two ranks, which write into each other's slots, and larger ones.
TEST(MemoryInCommon, ComesBackAfterTheGroupsItWasUsedInAreGone) {
  constexpr std::size_t elements = 1 << 20, rounds = 40;
  for (const int size : {2, 3}) {
    make_thread_world({.size = size})->run([&](Group& world) {
      std::set<const float*> seen;
      for (std::size_t round = 0; round < rounds; ++round) {
        Buffer<float> array = world.empty<float>(elements);
        seen.insert(array.data());
        Group duplicate = world.split(0);
        std::ranges::fill(array, 1.0F);
        duplicate.all_reduce(array);
        ASSERT_EQ(array[elements - 1], static_cast<float>(size));
      }
      EXPECT_LT(seen.size(), rounds / 2) << "nearly every array lies in memory of its own";
    });
  }
}

}  // namespace
}  // namespace tutti::contract
