// interleave_test.cpp: the checker against small programs whose outcomes are known.
// SPDX-License-Identifier: Apache-2.0
#include "verify/interleave.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace tutti::shm::interleave {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using Word = ModelAtomics::Word;

constexpr Order relaxed = std::memory_order_relaxed, acquire = std::memory_order_acquire,
                release = std::memory_order_release;

// What two ranks read, over all orders, as "ab".
using Outcomes = std::set<std::string>;

enum class Fences { none, first, both };

Outcomes store_buffering(Fences fences) {
  Checker checker;
  Word x, y, first, second;
  Outcomes outcomes;
  const Verdict verdict =
      checker.run({[&] {
                     x.store(1, relaxed);
                     if (fences != Fences::none) checker.fence();
                     first.store(y.load(relaxed), relaxed);
                   },
                   [&] {
                     y.store(1, relaxed);
                     if (fences == Fences::both) checker.fence();
                     second.store(x.load(relaxed), relaxed);
                   }},
                  [&] { outcomes.insert(std::to_string(first.load(relaxed)) + std::to_string(second.load(relaxed))); });
  EXPECT_THAT(verdict.failure, IsEmpty());
  return outcomes;
}

TEST(Interleave, stores_pass_loads_unless_both_ranks_fence) {
  EXPECT_EQ(store_buffering(Fences::none), (Outcomes{"00", "01", "10", "11"}));
  EXPECT_EQ(store_buffering(Fences::first), (Outcomes{"00", "01", "10", "11"}));
  EXPECT_EQ(store_buffering(Fences::both), (Outcomes{"01", "10", "11"}));
}

Verdict pass_a_message(Order publishing, Order looking) {
  Checker checker;
  Word flag;
  ModelAtomics::Plain<int> data;
  flag.called("flag");
  data.called("data");
  return checker.run({[&] {
                        data.set(7);
                        flag.store(1, publishing);
                      },
                      [&] {
                        checker.poll_until([&] { return flag.load(looking) == 1; });
                        checker.require(data.get() == 7, "another value");
                      }});
}

TEST(Interleave, a_message_needs_release_and_acquire) {
  EXPECT_THAT(pass_a_message(release, acquire).failure, IsEmpty());
  EXPECT_THAT(pass_a_message(relaxed, acquire).failure, HasSubstr("a race: rank 1 accesses data"));
  EXPECT_THAT(pass_a_message(release, relaxed).failure, HasSubstr("a race: rank 1 accesses data"));
}

TEST(Interleave, a_failure_tells_the_steps_that_lead_to_it) {
  EXPECT_EQ(pass_a_message(relaxed, acquire).failure,
            "a race: rank 1 accesses data, which another writes, after these steps:\n"
            "  rank 0: writes data = 7\n"
            "  rank 0: flag.store(1, relaxed)\n"
            "  rank 1: flag.load(acquire) gives 1\n"
            "  rank 1: reads data = 0\n");
}

TEST(Interleave, a_write_after_a_read_of_another_rank_is_a_race_without_acknowledgement) {
  for (const bool acknowledged : {true, false}) {
    Checker checker;
    Word flag, done;
    ModelAtomics::Plain<int> data;
    const Verdict verdict = checker.run({[&] {
                                           data.set(1);
                                           flag.store(1, release);
                                           if (acknowledged)
                                             checker.poll_until([&] { return done.load(acquire) == 1; });
                                           data.set(2);
                                         },
                                         [&] {
                                           checker.poll_until([&] { return flag.load(acquire) == 1; });
                                           checker.require(data.get() == 1, "another value");
                                           done.store(1, release);
                                         }});
    EXPECT_EQ(verdict.failure.empty(), acknowledged) << verdict.failure;
  }
}

TEST(Interleave, a_rank_never_sees_a_word_go_back) {
  Checker checker;
  Word x;
  const Verdict verdict = checker.run({[&] {
                                         x.store(1, relaxed);
                                         x.store(2, relaxed);
                                       },
                                       [&] {
                                         const auto before = x.load(relaxed);
                                         checker.require(x.load(relaxed) >= before, "went back");
                                       }});
  EXPECT_THAT(verdict.failure, IsEmpty());
}

// Two ranks write, two look in opposite order: they may disagree on which came first, unless they fence.
Outcomes opposite_readers(bool fenced) {
  Checker checker;
  Word x, y, left, right;
  Outcomes outcomes;
  const auto reader = [&](Word& one, Word& other, Word& result) {
    const auto seen = one.load(acquire);
    if (fenced) checker.fence();
    result.store(seen * 10 + other.load(acquire), relaxed);
  };
  const Verdict verdict = checker.run(
      {[&] { x.store(1, release); }, [&] { y.store(1, release); }, [&] { reader(x, y, left); },
       [&] { reader(y, x, right); }},
      [&] { outcomes.insert(std::to_string(left.load(relaxed)) + " " + std::to_string(right.load(relaxed))); });
  EXPECT_THAT(verdict.failure, IsEmpty());
  return outcomes;
}

TEST(Interleave, two_readers_may_disagree_on_the_order_of_two_writers_unless_they_fence) {
  EXPECT_TRUE(opposite_readers(false).contains("10 10"));
  EXPECT_FALSE(opposite_readers(true).contains("10 10"));
  EXPECT_TRUE(opposite_readers(true).contains("11 10"));
}

TEST(Interleave, additions_are_not_lost_and_carry_a_release_on) {
  Checker checker;
  Word counter;
  ModelAtomics::Plain<int> data;
  const Verdict verdict = checker.run({[&] {
                                         data.set(5);
                                         counter.fetch_add(1, release);
                                       },
                                       [&] { counter.fetch_add(1, relaxed); },
                                       [&] {
                                         checker.poll_until([&] { return counter.load(acquire) == 2; });
                                         checker.require(data.get() == 5, "another value");
                                       }},
                                      [&] { checker.require(counter.load(relaxed) == 2, "lost"); });
  EXPECT_THAT(verdict.failure, IsEmpty());
}

TEST(Interleave, one_of_two_takes_a_lock_by_compare_exchange) {
  Checker checker;
  Word lock, winners;
  const auto rank = [&] {
    std::uint32_t free = 0;
    if (lock.compare_exchange_strong(free, 1, std::memory_order_acq_rel)) winners.fetch_add(1, relaxed);
  };
  const Verdict verdict =
      checker.run({rank, rank, rank}, [&] { checker.require(winners.load(relaxed) == 1, "not one winner"); });
  EXPECT_THAT(verdict.failure, IsEmpty());
}

TEST(Interleave, ranks_that_wait_for_each_other_are_found) {
  Checker checker;
  Word x, y;
  x.called("x");
  const Verdict polls = checker.run({[&] {
                                       checker.poll_until([&] { return y.load(acquire) == 1; });
                                       x.store(1, release);
                                     },
                                     [&] {
                                       checker.poll_until([&] { return x.load(acquire) == 1; });
                                       y.store(1, release);
                                     }});
  EXPECT_THAT(polls.failure, HasSubstr("rank 0 polls, rank 1 polls for ever"));
  const Verdict sleeps = checker.run({[&] { x.sleep_while(0); }});
  EXPECT_THAT(sleeps.failure, HasSubstr("rank 0 sleeps on x for ever"));
}

TEST(Interleave, says_so_when_not_everything_was_tried) {
  Checker checker(10);
  Word x;
  const auto rank = [&] {
    for (int i = 0; i < 5; ++i) x.fetch_add(1, relaxed);
  };
  EXPECT_THAT(checker.run({rank, rank}).failure, HasSubstr("more than 10 states: not all were tried"));
}

}  // namespace
}  // namespace tutti::shm::interleave
