// steps_test.cpp: the flags' protocol in every order of steps of two and three ranks, on a memory weaker than this machine's.
// SPDX-License-Identifier: Apache-2.0
//
// The code is the one that groups run, on the model's atomics; slots are plain memory, where a race or a wrong value is a failure.
// Mutations show that the checker would notice: without acquire or release, or with a slot that is overwritten too early.
#include "intranode/steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "verify/steps_model.hpp"

namespace tutti::intranode {
namespace {

using namespace modelled;  // NOLINT(google-build-using-namespace): it was made for this file
using testing::HasSubstr;
using testing::IsEmpty;

// Calls that follow each other: slots are used again from the third on.
template <class Policy>
Verdict one_shots(int size, std::uint64_t calls) {
  return check<Policy>(size, [=](auto& member, int) {
    for (std::uint64_t call = 1; call <= calls; ++call) member.run(call, 1, Way::one_shot);
  });
}

// All orders of three ranks, or of longer runs, take minutes: they are tried with TUTTI_SOAK=1.
bool is_soak() { return std::getenv("TUTTI_SOAK") != nullptr; }

TEST(Steps, OneShotCallsFollowEachOther) {
  EXPECT_THAT(one_shots<Model>(2, 3).failure, IsEmpty());
  EXPECT_THAT(one_shots<ModelOfThree>(3, 1).failure, IsEmpty());
  if (!is_soak()) return;
  EXPECT_THAT(one_shots<Model>(2, 4).failure, IsEmpty());
}

// Of two slots, the second and third call alternate.
TEST(Steps, AlternatingCallsFollowEachOtherAndOthers) {
  for (const Way before : {Way::alternating, Way::one_shot, Way::broadcast}) {
    for (const Way after : {Way::alternating, Way::one_shot, Way::broadcast}) {
      const Verdict verdict = check<Model>(2, [=](auto& member, int) {
        member.run(1, 1, before);
        member.run(2, 1, Way::alternating);
        member.run(3, 1, after);
        if (is_soak()) member.run(4, 1, before);
      });
      EXPECT_THAT(verdict.failure, IsEmpty()) << static_cast<int>(before) << static_cast<int>(after);
    }
  }
}

// The root of a broadcast does not look at the other, which leaves round 0 of another call in the root's slot meanwhile.
TEST(Steps, ARankThatAlternatesDoesNotDisturbOneThatTakesPartInSomethingElse) {
  const Verdict verdict = check<ModelOfManyInlineSlots>(2, [](auto& member, int rank) {
    if (rank == 0) member.run(2, 1, Way::broadcast);
    if (rank == 1) member.disagree(2, 2, Way::alternating);
    member.run(3, 1, Way::broadcast);
    member.run(4, 1, Way::alternating);
  });
  EXPECT_THAT(verdict.failure, IsEmpty());
}

// Rank 0 may give its second crossed call up before it has left anything: it has to keep in mind that the other may have.
TEST(Steps, ARankThatAlternatesDoesNotDisturbOneThatGivesTheCallUpSoon) {
  const Verdict verdict = check<ModelOfManyInlineSlots>(2, [](auto& member, int rank) {
    member.run(2, 1, Way::alternating);
    if (rank == 0) member.run(3, 1, Way::broadcast);
    member.give_up(4, 1, Way::alternating);
    if (rank == 0) member.run(5, 1, Way::broadcast);
    member.run(6, 1, Way::alternating);
  });
  EXPECT_THAT(verdict.failure, IsEmpty());
}

TEST(Steps, ARankThatAlternatesDoesNotDisturbOneThatSkipsTheCall) {
  for (const Way next : {Way::alternating, Way::broadcast}) {
    const Verdict verdict = check<Model>(2, [=](auto& member, int rank) {
      member.run(1, 1, Way::alternating);
      if (rank == 1) member.give_up(2, 1, Way::alternating);
      member.run(3, 1, next);
      member.run(4, 1, Way::alternating);
    });
    EXPECT_THAT(verdict.failure, IsEmpty());
  }
}

TEST(Steps, ReducedBackCallsFollowEachOther) {
  const auto calls = [](auto& member, int) {
    member.run(1, 1, Way::reduced);
    member.run(2, 1, Way::reduced);
    if (is_soak()) member.run(3, 1, Way::one_shot);  // in the slot of the first: nobody has said that it was taken
  };
  EXPECT_THAT(check<Model>(2, calls).failure, IsEmpty());
  if (!is_soak()) return;
  const auto call = [](auto& member, int) { member.run(1, 1, Way::reduced); };
  EXPECT_THAT(check<ReductionsOfThree>(3, call, 40'000'000).failure, IsEmpty());  // three minutes
}

template <class Policy>
Verdict pipeline(int size, std::int64_t rounds, Way way) {
  return check<Policy>(size, [=](auto& member, int) { member.run(1, rounds, way); });
}

TEST(Steps, ChunksFollowEachOtherThroughTwoSlots) {
  EXPECT_THAT(pipeline<Model>(2, 2, Way::one_shot).failure, IsEmpty());
  EXPECT_THAT(pipeline<Model>(2, 2, Way::alternating).failure, IsEmpty());
  EXPECT_THAT(pipeline<Model>(2, 2, Way::reduced).failure, IsEmpty());
  EXPECT_THAT(pipeline<Model>(2, 3, Way::broadcast).failure, IsEmpty());
  EXPECT_THAT(pipeline<ModelOfThree>(3, 2, Way::broadcast).failure, IsEmpty());
  if (!is_soak()) return;
  EXPECT_THAT(pipeline<Model>(2, 4, Way::broadcast).failure, IsEmpty());
  EXPECT_THAT(pipeline<Model>(2, 3, Way::one_shot).failure, IsEmpty());
  EXPECT_THAT(pipeline<Model>(2, 3, Way::alternating).failure, IsEmpty());
  EXPECT_THAT(pipeline<ModelOfThree>(3, 3, Way::broadcast).failure, IsEmpty());
}

TEST(Steps, MessagesInInlineSlotsFollowEachOther) {
  for (const Way way : {Way::inline_slot, Way::inline_broadcast}) {
    for (const Way between : {Way::inline_slot, Way::inline_broadcast, Way::one_shot}) {
      const Verdict verdict = check<ModelOfInlineSlots>(2, [=](auto& member, int) {
        member.run(1, 1, way);
        member.run(2, 1, between);
        member.run(3, 1, way);
      });
      EXPECT_THAT(verdict.failure, IsEmpty()) << static_cast<int>(way) << static_cast<int>(between);
    }
  }
}

// Two inline slots: what is left in the third call lies where the first was.
TEST(Steps, AMessageInAnInlineSlotThatIsGivenUpOrSkippedLeavesNothingBehind) {
  for (const Way way : {Way::inline_slot, Way::inline_broadcast}) {
    const Verdict given_up = check<ModelOfInlineSlots>(2, [=](auto& member, int rank) {
      if (rank == 0) member.give_up(1, 1, way);
      member.run(2, 1, way);
      member.run(3, 1, way);
    });
    EXPECT_THAT(given_up.failure, IsEmpty()) << static_cast<int>(way);
    const Verdict by_both = check<ModelOfInlineSlots>(2, [=](auto& member, int) {
      member.give_up(1, 1, way);
      member.run(2, 1, way);
      member.run(3, 1, way);
    });
    EXPECT_THAT(by_both.failure, IsEmpty()) << static_cast<int>(way);
  }
}

TEST(Steps, ACallThatOneRankSkipsAndTheOtherGivesUpLeavesNothingBehind) {
  for (const Way way : {Way::one_shot, Way::alternating}) {
    for (const Way skipped : {Way::one_shot, Way::alternating, Way::reduced, Way::broadcast}) {
      const Verdict verdict = check<Model>(2, [=](auto& member, int rank) {
        if (rank == 0) member.give_up(1, 2, skipped);
        member.run(2, 1, way);
        member.run(3, 1, way);
      });
      EXPECT_THAT(verdict.failure, IsEmpty()) << static_cast<int>(way) << static_cast<int>(skipped);
    }
  }
}

TEST(Steps, ACallThatBothRanksGiveUpAtAnyPointLeavesNothingBehind) {
  for (const Way way : {Way::one_shot, Way::alternating, Way::reduced}) {
    const Verdict verdict = check<Model>(2, [=](auto& member, int) {
      member.give_up(1, is_soak() && way == Way::one_shot ? 2 : 1, way);
      member.run(2, 1, way);
    });
    EXPECT_THAT(verdict.failure, IsEmpty());
  }
}

TEST(Steps, WithoutAcquireOrReleaseTheCheckerFindsARace) {
  using NoAcquire = Weakened<std::memory_order_relaxed, std::memory_order_release>;
  using NoRelease = Weakened<std::memory_order_acquire, std::memory_order_relaxed>;
  EXPECT_THAT(one_shots<NoAcquire>(2, 2).failure, HasSubstr("a race"));
  EXPECT_THAT(one_shots<NoRelease>(2, 2).failure, HasSubstr("a race"));
  EXPECT_THAT(pipeline<NoAcquire>(2, 2, Way::alternating).failure, HasSubstr("a race"));
  using InlineSlotWithoutAcquire = Weakened<std::memory_order_relaxed, std::memory_order_release, ModelOfInlineSlots>;
  using InlineSlotWithoutRelease = Weakened<std::memory_order_acquire, std::memory_order_relaxed, ModelOfInlineSlots>;
  EXPECT_THAT(pipeline<InlineSlotWithoutAcquire>(2, 1, Way::inline_slot).failure, HasSubstr("a race"));
  EXPECT_THAT(pipeline<InlineSlotWithoutRelease>(2, 1, Way::inline_slot).failure, HasSubstr("a race"));
  EXPECT_THAT(pipeline<NoAcquire>(2, 3, Way::broadcast).failure, HasSubstr("a race"));
  EXPECT_THAT(pipeline<NoAcquire>(2, 1, Way::reduced).failure, HasSubstr("a race"));
  EXPECT_THAT(pipeline<NoRelease>(2, 1, Way::reduced).failure, HasSubstr("a race"));
}

TEST(Steps, ASlotThatIsOverwrittenBeforeItIsConsumedIsFound) {
  Checker checker;
  Desks<Model> desks(2);
  const Verdict verdict = checker.run({[&] { Rank<Model>(desks, 0).run(1, 3, Way::broadcast); },
                                       [&] {
                                         Rank<Model> member(desks, 1);
                                         member.begin(1, 3, Way::broadcast);
                                         desks[1].flags.consumed.seq.store(1 << 20, std::memory_order_release);
                                         member.complete();
                                       }});
  EXPECT_THAT(verdict.failure, testing::AnyOf(HasSubstr("a race"), HasSubstr("a piece of another round")));
}

TEST(Steps, ARankThatNeverComesIsWaitedFor) {
  const Verdict verdict = check<Model>(2, [](auto& member, int rank) {
    if (rank == 0) member.run(1, 1, Way::one_shot);
  });
  EXPECT_THAT(verdict.failure, HasSubstr("polls for ever"));
}

}  // namespace
}  // namespace tutti::intranode
