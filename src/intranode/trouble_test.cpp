// trouble_test.cpp: calls that some members leave out, give up, or mean differently; the group goes on.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <optional>

#include "intranode/intranode_group.hpp"
#include "tests/support/intranode_members.hpp"
#include "tests/support/intranode_sample.hpp"

namespace tutti::intranode {
namespace {

constexpr SharedLimits small_limits{.slot_bytes = 512,
                                    .chunk_bytes = 512,
                                    .one_way_chunk_bytes = 192,
                                    .alternating_chunk_bytes = 256,
                                    .one_shot_bytes_max = 384,
                                    .one_shot_bytes_max_alternating = 1024};

constexpr Verb moving_verbs[] = {Verb::all_reduce, Verb::reduce,  Verb::broadcast,  Verb::all_gather,
                                 Verb::gather,     Verb::scatter, Verb::all_to_all, Verb::reduce_scatter,
                                 Verb::scan,       Verb::barrier};

SampleShape drawn_shape(Random& random, int size) {
  SampleShape shape{.verb = moving_verbs[random.below(std::size(moving_verbs))], .size = size};
  shape.count = shape.verb == Verb::barrier ? 0 : random.chance(0.3) ? random.between(0, 4) : random.between(0, 900);
  shape.root = static_cast<int>(random.below(static_cast<std::uint64_t>(size)));
  shape.in_place = random.chance(0.5);
  return shape;
}

void finish(Members& members, const std::vector<Execution*>& executions, const Sample& sample, Random& random) {
  poll_all(executions, random);
  for (int rank = 0; rank < members.size(); ++rank) {
    ASSERT_EQ(sample.difference(rank), "");
    members[rank].release(*executions[static_cast<std::size_t>(rank)]);
  }
}

// What the inline slot does when a rank refuses a call: the others, wherever they are in it, are told and give it up.
TEST(Trouble, CallsThatSomeSkipAndOthersGiveUpHalfWayLeaveTheGroupUsable) {
  Random random(23);
  for (int size = 2; size <= 4; ++size) {
    Members members(size, small_limits);
    std::uint64_t sequence = 0;
    for (int repeat = 0; repeat < 400; ++repeat) {
      Sample broken(drawn_shape(random, size), ++sequence, random);
      std::vector<std::pair<int, Execution*>> entered;
      for (int rank = 0; rank < size; ++rank) {
        if (random.chance(0.6)) entered.emplace_back(rank, &members[rank].start(broken.start(rank)));
      }
      for (std::uint64_t i = random.below(20); i > 0 && !entered.empty(); --i) {
        entered[random.below(entered.size())].second->poll();
      }
      for (auto& [rank, execution] : entered) {
        execution->cancel();
        members[rank].release(*execution);
      }
      Sample whole(drawn_shape(random, size), ++sequence, random);
      std::vector<Execution*> executions;
      for (int rank = 0; rank < size; ++rank) executions.push_back(&members[rank].start(whole.start(rank)));
      finish(members, executions, whole, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Trouble, APeerThatIsFurtherAheadIsNotMistakenForOneThatTookPart) {
  Random random(29);
  Members members(2, small_limits);
  // Rank 1 leaves out call 1 and enters the next ones, as far as it gets.
  Sample skipped({.verb = Verb::all_reduce, .count = 300}, 1, random);
  Sample next({.verb = Verb::all_reduce, .count = 300}, 2, random);
  Execution& stuck = members[0].start(skipped.start(0));
  Execution& ahead = members[1].start(next.start(1));
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(stuck.poll());
    EXPECT_FALSE(ahead.poll());
  }
  stuck.cancel();
  members[0].release(stuck);
  finish(members, {&members[0].start(next.start(0)), &ahead}, next, random);
}

TEST(Trouble, NothingOfTheCallersMemoryIsTouchedAfterACallIsGivenUp) {
  Random random(31);
  Members members(2, small_limits);
  Sample sample({.verb = Verb::all_reduce, .count = 3000, .in_place = true}, 1, random);
  ExecutionStart mine = sample.start(0);
  Execution& execution = members[0].start(mine);
  Execution& other = members[1].start(sample.start(1));
  execution.poll();
  other.poll();
  execution.poll();
  execution.cancel();
  const std::vector<std::byte> before(mine.output, mine.output + 12000);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(other.poll());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), mine.output));
  EXPECT_FALSE(execution.poll());
}

// What is read in place may change as soon as its owner gave the call up: then nobody may come out of it with a result.
TEST(Trouble, ACallWhoseArraysWereReadInPlaceDoesNotEndIfTheirOwnerGaveItUp) {
  Random random(33);
  SharedLimits limits = small_limits;
  limits.direct_copy_bytes_min = 100;
  for (const int polls :
       {1, 2}) {  // the root gives up at the buffer exchange, or while it waits for the others to have read
    Members members(3, limits, Members::Arrays::readable);
    Sample broken({.verb = Verb::all_gather, .size = 3, .count = 1000}, 1, random);
    std::vector<Execution*> executions;
    for (int rank = 0; rank < 3; ++rank) executions.push_back(&members[rank].start(broken.start(rank)));
    if (polls == 2) {  // the first was in start()
      EXPECT_FALSE(executions[0]->poll());
    }
    executions[0]->cancel();
    // It goes on to other calls.
    Sample next({.verb = Verb::all_reduce, .size = 3, .count = 3}, 2, random);
    std::vector<Execution*> ahead{&members[0].start(next.start(0))};
    for (int i = 0; i < 20; ++i) {
      EXPECT_FALSE(ahead[0]->poll());
      EXPECT_FALSE(executions[1]->poll());
      EXPECT_FALSE(executions[2]->poll());
    }
    for (int rank = 1; rank < 3; ++rank) {
      executions[static_cast<std::size_t>(rank)]->cancel();
      ahead.push_back(&members[rank].start(next.start(rank)));
    }
    finish(members, ahead, next, random);
  }
}

TEST(Trouble, AQueuedCallThatIsGivenUpLetsTheOthersPass) {
  Random random(37);
  Members members(2, small_limits);
  Sample first({.verb = Verb::broadcast, .count = 2000}, 1, random);
  Sample given_up({.verb = Verb::all_reduce, .count = 20}, 2, random);
  Sample last({.verb = Verb::all_reduce, .count = 200}, 3, random);
  std::vector<Execution*> firsts, lasts, middle;
  for (int rank = 0; rank < 2; ++rank) {
    firsts.push_back(&members[rank].start(first.start(rank)));
    middle.push_back(&members[rank].start(given_up.start(rank)));
    lasts.push_back(&members[rank].start(last.start(rank)));
  }
  for (Execution* execution : middle) execution->cancel();
  finish(members, firsts, first, random);
  finish(members, lasts, last, random);
}

/// What rank 0's and rank 1's polls throw, if anything.
std::vector<std::optional<SignatureDiffers>> differences(const std::vector<Execution*>& executions) {
  std::vector<std::optional<SignatureDiffers>> found(executions.size());
  for (int i = 0; i < 10; ++i) {
    for (std::size_t rank = 0; rank < executions.size(); ++rank) {
      try {
        if (!found[rank]) executions[rank]->poll();
      } catch (const SignatureDiffers& difference) {
        found[rank] = difference;
      }
    }
  }
  return found;
}

TEST(Trouble, RanksThatAskForDifferentThingsLearnWhatTheOtherWants) {
  Random random(41);
  // Pairs that use different inline slots, slots and rounds, too.
  const std::pair<SampleShape, SampleShape> pairs[] = {
      {{.verb = Verb::all_reduce, .count = 1}, {.verb = Verb::all_reduce, .count = 1000}},
      {{.verb = Verb::all_reduce, .count = 200}, {.verb = Verb::all_gather, .count = 200}},
      {{.verb = Verb::all_reduce, .op = Op::Kind::min, .count = 200}, {.verb = Verb::all_reduce, .count = 200}},
      {{.verb = Verb::barrier, .count = 0}, {.verb = Verb::all_to_all, .count = 500}}};
  for (const auto& [one, other] : pairs) {
    Members members(2, small_limits);
    Sample mine(one, 1, random), theirs(other, 1, random);
    const auto found = differences({&members[0].start(mine.start(0)), &members[1].start(theirs.start(1))});
    ASSERT_TRUE(found[0] && found[1]) << mine.text();
    EXPECT_EQ(found[0]->peer(), 1);
    EXPECT_EQ(found[0]->theirs(), theirs.start(1).signature);
    EXPECT_EQ(found[1]->peer(), 0);
    EXPECT_EQ(found[1]->theirs(), mine.start(0).signature);
  }
}

// What is written down of a call that is made again and again is its number only.
TEST(Trouble, ARankThatRepeatsACallLearnsThatTheOtherNoLongerDoes) {
  Random random(4);
  Members members(2, small_limits);
  std::uint64_t sequence = 1;
  const SampleShape repeated{.verb = Verb::all_reduce, .size = 2, .count = 3};
  Sample first(repeated, sequence, random);
  std::vector<Execution*> executions{&members[0].start(first.start(0)), &members[1].start(first.start(1))};
  poll_all(executions, random);
  for (int again = 0; again < 100; ++again) {
    Sample sample(repeated, ++sequence, random);
    for (int rank = 0; rank < 2; ++rank) {
      const ExecutionStart start = sample.start(rank);
      members[rank].run_again(*executions[static_cast<std::size_t>(rank)], start);
    }
    poll_all(executions, random);
  }
  Sample sample(repeated, ++sequence, random);
  Sample other({.verb = Verb::all_reduce, .size = 2, .count = 4}, sequence, random);
  const ExecutionStart start = sample.start(0);
  members[0].run_again(*executions[0], start);
  Execution& differs = members[1].start(other.start(1));
  for (Execution* execution : {&differs, executions[0]}) {
    try {
      execution->poll();
      FAIL() << "the difference was not noticed";
    } catch (const SignatureDiffers& difference) {
      EXPECT_EQ(difference.theirs().sequence, sequence);
      EXPECT_EQ(difference.theirs().count, execution == &differs ? 3 : 4);
    }
    execution->cancel();
  }
}

TEST(Trouble, ADifferenceThatNobodyCouldNoticeIsFoundInTheNextCall) {
  Random random(43);
  Members members(2, small_limits);
  // Both believe to be the root, and hear nobody.
  Sample mine({.verb = Verb::broadcast, .root = 0, .count = 9}, 1, random);
  Sample theirs({.verb = Verb::broadcast, .root = 1, .count = 9}, 1, random);
  EXPECT_TRUE(members[0].start(mine.start(0)).poll());
  EXPECT_TRUE(members[1].start(theirs.start(1)).poll());
  Sample next({.verb = Verb::barrier, .count = 0}, 2, random);
  ExecutionStart starts[] = {next.start(0), next.start(1)};
  starts[0].signature.history = 17;  // of the calls before, as their groups keep it
  starts[1].signature.history = 18;
  const auto found = differences({&members[0].start(starts[0]), &members[1].start(starts[1])});
  ASSERT_TRUE(found[0] && found[1]);
  EXPECT_EQ(found[0]->theirs().root, 1);
  EXPECT_EQ(found[1]->theirs().root, 0);
}

TEST(Trouble, ADifferenceOfLongAgoIsFoundThoughTheLogHasForgottenIt) {
  Random random(44);
  Members members(2, small_limits);
  for (std::uint64_t sequence = 1; sequence <= 2 * SignatureLog::entry_count; ++sequence) {
    Sample same({.verb = Verb::barrier, .count = 0}, sequence, random);
    std::vector<Execution*> executions{&members[0].start(same.start(0)), &members[1].start(same.start(1))};
    poll_all(executions, random);
  }
  Sample next({.verb = Verb::barrier, .count = 0}, 2 * SignatureLog::entry_count + 1, random);
  ExecutionStart starts[] = {next.start(0), next.start(1)};
  starts[0].signature.history = 17;
  starts[1].signature.history = 18;
  const auto found = differences({&members[0].start(starts[0]), &members[1].start(starts[1])});
  ASSERT_TRUE(found[0] && found[1]);
  EXPECT_TRUE(found[0]->theirs().is_same_call(starts[0].signature));
  EXPECT_EQ(found[0]->theirs().history, 18u);
}

TEST(Trouble, PartsOfOneCallAreToldApart) {
  Random random(47);
  Members members(2, small_limits);
  Sample sample({.verb = Verb::all_gather, .count = 1}, 1, random);
  ExecutionStart sizes = sample.start(0), execution = sample.start(1);
  sizes.phase = 1;
  const auto found = differences({&members[0].start(sizes), &members[1].start(execution)});
  EXPECT_TRUE(found[0] && found[1]);
}

TEST(Trouble, ACallOfSeveralPartsGoesThroughThemInOrder) {
  Random random(53);
  Members members(3, small_limits);
  for (std::uint64_t sequence = 1; sequence < 30; ++sequence) {
    for (std::uint32_t phase = 1; phase <= 5; ++phase) {
      Sample sample(drawn_shape(random, 3), sequence, random);
      std::vector<Execution*> executions;
      for (int rank = 0; rank < 3; ++rank) {
        ExecutionStart start = sample.start(rank);
        start.phase = phase * 77777;
        start.signature = {.sequence = sequence, .verb = Verb::all_reduce};
        executions.push_back(&members[rank].start(start));
      }
      finish(members, executions, sample, random);
    }
  }
}

}  // namespace
}  // namespace tutti::intranode
