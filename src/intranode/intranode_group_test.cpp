// intranode_group_test.cpp: every verb through shared memory, with members that take turns in one thread, in any order.
// SPDX-License-Identifier: Apache-2.0
#include "intranode/intranode_group.hpp"

#include <gtest/gtest.h>

#include "base/sanitizers.hpp"
#include "tests/support/intranode_members.hpp"
#include "tests/support/intranode_sample.hpp"
#include "tests/support/kernel_reference.hpp"

namespace tutti::intranode {
namespace {

constexpr SharedLimits small_limits{.inline_bytes_max = 304,
                                    .slot_bytes = 512,
                                    .chunk_bytes = 512,
                                    .one_way_chunk_bytes = 192,
                                    .alternating_chunk_bytes = 256,
                                    .one_shot_bytes_max = 384,
                                    .one_shot_bytes_max_alternating = 1024,
                                    .read_by_two_bytes_min = 1100};

// One thread polls all members: what sanitizers find, they find in a part of it, too, and the one for threads hardly anything.
#if TUTTI_THREAD_SANITIZER
constexpr double share = 0.05;
#elif TUTTI_ADDRESS_SANITIZER
constexpr double share = 0.25;
#else
constexpr double share = 1;
#endif

constexpr Verb all_verbs[] = {Verb::all_reduce,     Verb::reduce,  Verb::broadcast,  Verb::all_gather,
                              Verb::gather,         Verb::scatter, Verb::all_to_all, Verb::scan,
                              Verb::reduce_scatter, Verb::exscan,  Verb::permute,    Verb::barrier};

constexpr bool may_be_uneven(Verb verb) {
  return verb == Verb::all_gather || verb == Verb::gather || verb == Verb::reduce_scatter || verb == Verb::scatter ||
         verb == Verb::all_to_all;
}

/// Everything that a shape can be, in some thousand draws that reach each of its values many times.
SampleShape drawn_shape(Random& random, int size, std::int64_t count_max) {
  SampleShape shape{.size = size};
  shape.verb = all_verbs[random.below(std::size(all_verbs))];
  shape.dtype = static_cast<DType>(random.below(dtype_count));
  do {
    shape.op = kernel::all_ops[random.below(std::size(kernel::all_ops))];
  } while (!applies(shape.op, shape.dtype) || shape.op == Op::Kind::premul);
  shape.root = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
  shape.count = random.chance(0.1) ? 0 : random.chance(0.3) ? random.between(1, 8) : random.between(1, count_max);
  shape.uneven = may_be_uneven(shape.verb) && random.chance(0.5);
  shape.in_place = random.chance(0.5);
  if (shape.verb == Verb::barrier) shape = {.verb = Verb::barrier, .size = size, .count = 0};
  return shape;
}

/// Runs the sample on all members; they are polled in random order until all are done.
void run(Members& members, Sample& sample, Random& random) {
  std::vector<Execution*> executions;
  for (int rank = 0; rank < members.size(); ++rank) executions.push_back(&members[rank].start(sample.start(rank)));
  poll_all(executions, random);
  for (int rank = 0; rank < members.size(); ++rank) {
    ASSERT_EQ(sample.difference(rank), "");
    members[rank].release(*executions[static_cast<std::size_t>(rank)]);
  }
}

TEST(IntranodeGroup, ReadsAndWritesLargeArraysWhereTheyLieIfAllAllowIt) {
  Random random(17);
  SharedLimits limits = small_limits;
  limits.direct_copy_bytes_min = limits.direct_reduce_bytes_min = 1000;
  limits.stream_bytes_min = limits.stream_gather_bytes_min = 1200;
  limits.read_bytes_max = 2000;
  limits.read_scattered_bytes_min = 4000;
  limits.read_by_two_bytes_min = 1;
  for (const auto arrays : {Members::Arrays::elsewhere, Members::Arrays::in_common, Members::Arrays::readable}) {
    for (int size = 2; size <= 4; ++size) {
      Members members(size, limits, arrays);
      std::uint64_t sequence = 0;
      int direct = 0;
      for (int repeat = 0; repeat < 400; ++repeat) {
        Sample sample(drawn_shape(random, size, 900), ++sequence, random);
        std::vector<Execution*> executions;
        for (int rank = 0; rank < size; ++rank) executions.push_back(&members[rank].start(sample.start(rank)));
        poll_all(executions, random);
        direct += executions[0]->progress().how == "arrays in place over shared memory" ? 1 : 0;
        for (int rank = 0; rank < size; ++rank) {
          ASSERT_EQ(sample.difference(rank), "");
          members[rank].release(*executions[static_cast<std::size_t>(rank)]);
        }
      }
      EXPECT_EQ(direct > 5, arrays != Members::Arrays::elsewhere) << direct;
    }
  }
}

TEST(IntranodeGroup, ExecutionsThatAreDoneAreStartedAgainForOtherArrays) {
  Random random(23);
  SharedLimits limits = small_limits;
  limits.direct_copy_bytes_min = limits.direct_reduce_bytes_min = 1000;
  limits.stream_bytes_min = limits.stream_gather_bytes_min = 1200;
  for (const auto arrays : {Members::Arrays::elsewhere, Members::Arrays::in_common, Members::Arrays::readable}) {
    for (int size = 2; size <= 4; ++size) {
      Members members(size, limits, arrays);
      std::uint64_t sequence = 0;
      for (int repeat = 0; repeat < 100; ++repeat) {
        SampleShape shape = drawn_shape(random, size, 500);
        shape.uneven = false;                       // every sample draws counts of its own
        if (shape.verb == Verb::permute) continue;  // … and pairs
        Sample first(shape, ++sequence, random);
        std::vector<Execution*> executions;
        for (int rank = 0; rank < size; ++rank) executions.push_back(&members[rank].start(first.start(rank)));
        poll_all(executions, random);
        for (int again = 0; again < 5; ++again) {
          Sample sample(shape, ++sequence, random);
          for (int rank = 0; rank < size; ++rank) {
            const ExecutionStart start = sample.start(rank);
            members[rank].run_again(*executions[static_cast<std::size_t>(rank)], start);
          }
          poll_all(executions, random);
          for (int rank = 0; rank < size; ++rank) ASSERT_EQ(sample.difference(rank), "") << sample.text();
        }
        for (int rank = 0; rank < size; ++rank) members[rank].release(*executions[static_cast<std::size_t>(rank)]);
      }
    }
  }
}

class EveryVerb : public testing::TestWithParam<Verb> {};

TEST_P(EveryVerb, GivesWhatItsDefinitionSaysForAllTypesCountsRanksAndRoots) {
  Random random(7);
  SharedLimits limits = small_limits;
  limits.direct_copy_bytes_min = limits.direct_reduce_bytes_min = 1000;
  limits.stream_bytes_min = limits.stream_gather_bytes_min = 1200;
  limits.read_bytes_max = 2000;
  for (int members_of = 1; members_of <= 6; ++members_of) {
    const int size = members_of <= 5 ? members_of : 2;  // … once more
    limits.inline_bytes_max = members_of <= 5 ? 304 : 560;
    const auto arrays = static_cast<Members::Arrays>(size % 3);
    Members members(size, limits, arrays);
    std::uint64_t sequence = 0;
    for (int type = 0; type < dtype_count; ++type) {
      // Around what fits into a line, an inline slot (112 bytes, 304 or 560 of two ranks), a slot (512), a one-shot (128), and several slots.
      const auto element = static_cast<std::int64_t>(size_of(static_cast<DType>(type)));
      for (const std::int64_t bytes :
           {0, 1, 16, 48, 49, 64, 112, 113, 128, 129, 304, 305, 512, 528, 560, 561, 1024, 1040, 3000}) {
        for (const bool in_place : {false, true}) {
          if (!random.chance(share)) continue;
          SampleShape shape{.verb = GetParam(), .dtype = static_cast<DType>(type), .size = size};
          shape.count = (bytes + element - 1) / element;
          shape.root = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
          shape.in_place = in_place;
          shape.uneven = may_be_uneven(shape.verb) && random.chance(0.5);
          do {
            shape.op = kernel::all_ops[random.below(8)];
          } while (!applies(shape.op, shape.dtype));
          if (shape.verb == Verb::barrier) shape.count = 0;
          Sample sample(shape, ++sequence, random);
          run(members, sample, random);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(IntranodeGroup, EveryVerb, testing::ValuesIn(all_verbs),
                         [](const auto& verb) { return std::string(name_of(verb.param)); });

TEST(IntranodeGroup, KeepsTheOrderOfCallsThatAreStartedTogether) {
  Random random(11);
  for (int size = 2; size <= 4; ++size) {
    Members members(size, small_limits);
    std::uint64_t sequence = 0;
    for (int repeat = 0; repeat < 60; ++repeat) {
      std::vector<Sample> samples;
      std::vector<Execution*> executions;
      for (int i = 0; i < 6; ++i) samples.emplace_back(drawn_shape(random, size, 600), ++sequence, random);
      for (auto& sample : samples) {
        for (int rank = 0; rank < size; ++rank) executions.push_back(&members[rank].start(sample.start(rank)));
      }
      poll_all(executions, random);
      for (std::size_t i = 0; i < executions.size(); ++i) {
        const int rank = static_cast<int>(i) % size;
        ASSERT_EQ(samples[i / static_cast<std::size_t>(size)].difference(rank), "");
        members[rank].release(*executions[i]);
      }
    }
  }
}

TEST(IntranodeGroup, RunsAsFarAheadAsItsSlotsAllow) {
  // The root of a broadcast waits for nobody; slots and inline slots bound how many calls it can be ahead.
  Random random(3);
  Members members(2, {.inline_bytes_max = 304, .slot_bytes = 512, .chunk_bytes = 512});
  std::vector<Sample> samples;
  for (std::uint64_t i = 1; i <= 20; ++i)
    samples.emplace_back(SampleShape{.verb = Verb::broadcast, .count = 100}, i, random);
  std::vector<Execution*> root, other;
  for (auto& sample : samples) root.push_back(&members[0].start(sample.start(0)));
  for (int i = 0; i < 5; ++i) root.back()->poll();
  EXPECT_TRUE(root[1]->poll());
  EXPECT_FALSE(root[2]->poll());
  EXPECT_EQ(root[2]->progress().waiting_for, std::vector{1});
  for (auto& sample : samples) other.push_back(&members[1].start(sample.start(1)));
  std::vector<Execution*> all(root);
  all.insert(all.end(), other.begin(), other.end());
  poll_all(all, random);
  for (auto& sample : samples) EXPECT_EQ(sample.difference(1), "");
}

TEST(IntranodeGroup, NamesThoseItWaitsFor) {
  Random random(5);
  Members members(3, small_limits);
  Sample sample({.verb = Verb::all_reduce, .size = 3, .count = 100}, 1, random);
  Execution& first = members[0].start(sample.start(0));
  EXPECT_FALSE(first.poll());
  EXPECT_EQ(first.progress().waiting_for, (std::vector{1, 2}));
  Execution& third = members[2].start(sample.start(2));
  EXPECT_FALSE(third.poll());
  EXPECT_FALSE(first.poll());
  EXPECT_EQ(first.progress().waiting_for, std::vector{1});
}

TEST(IntranodeGroup, NotifiesAfterItPublishedAndNotOtherwise) {
  Random random(5);
  Members members(2, small_limits);
  Sample sample({.verb = Verb::barrier, .size = 2, .count = 0}, 1, random);
  Execution& execution = members[0].start(sample.start(0));
  EXPECT_FALSE(execution.poll());
  const int notifications = members.segment(0).notifications();
  EXPECT_GE(notifications, 1);
  EXPECT_FALSE(execution.poll());
  EXPECT_EQ(members.segment(0).notifications(), notifications);
}

TEST(IntranodeGroup, IsVacantOnceAllOthersHaveDeparted) {
  Members members(3, small_limits);
  EXPECT_FALSE(members[0].is_vacant());
  members[0].depart();
  members[1].depart();
  EXPECT_FALSE(members[0].is_vacant());
  EXPECT_FALSE(members[1].is_vacant());
  members[2].depart();
  EXPECT_TRUE(members[0].is_vacant());
  EXPECT_TRUE(members[1].is_vacant());
}

}  // namespace
}  // namespace tutti::intranode
