// call_history_test.cpp: which programs have the same digest, and which calls it can still name.
// SPDX-License-Identifier: Apache-2.0
#include "group/call_history.hpp"

#include <gtest/gtest.h>

namespace tutti {
namespace {

Signature broadcast_from(int root) {
  return {.verb = Verb::broadcast, .dtype = DType::float32, .root = root, .count = 3};
}

/// What the signature of the next call says of those before it.
std::uint32_t tag_of(CallHistory history) {
  Signature next{.verb = Verb::barrier};
  history.number(next);
  return next.history;
}

std::uint32_t tag_after(std::initializer_list<Signature> calls) {
  CallHistory history;
  for (Signature call : calls) history.number(call);
  return tag_of(history);
}

TEST(CallHistory, tells_roots_counts_and_the_order_of_calls_apart) {
  const Signature barrier{.verb = Verb::barrier};
  EXPECT_EQ(tag_after({broadcast_from(0), barrier}), tag_after({broadcast_from(0), barrier}));
  EXPECT_NE(tag_after({broadcast_from(0), barrier}), tag_after({broadcast_from(1), barrier}));
  EXPECT_NE(tag_after({broadcast_from(0), barrier}), tag_after({barrier, broadcast_from(0)}));
  EXPECT_NE(tag_after({broadcast_from(0)}), tag_after({broadcast_from(0), broadcast_from(0)}));
}

TEST(CallHistory, of_different_programs_differs_nearly_always) {
  int same = 0;
  for (int root = 1; root < 20000; ++root) {
    same += tag_after({broadcast_from(0), broadcast_from(7)}) == tag_after({broadcast_from(root), broadcast_from(7)});
  }
  EXPECT_LE(same, 1);
}

TEST(CallHistory, a_refused_call_counts_on_no_rank_once_all_know) {
  CallHistory refuser, peer;
  Signature first = broadcast_from(0), second = broadcast_from(0), third = broadcast_from(2), again = third;
  refuser.number(first);
  peer.number(second);
  refuser.refuse();
  Signature refused = broadcast_from(1);
  peer.number(refused);
  refuser.number(third);
  Signature unexpected = again;
  peer.number(unexpected);
  EXPECT_EQ(third, unexpected) << "the peer does not know of the refusal yet: nothing can be compared";
  peer.take_out(1);
  Signature a = broadcast_from(5), b = broadcast_from(5), other = broadcast_from(6);
  refuser.number(a);
  CallHistory elsewhere = peer;
  peer.number(b);
  elsewhere.number(other);
  EXPECT_EQ(a, b);
  EXPECT_EQ(tag_of(refuser), tag_of(peer));
  EXPECT_FALSE(histories_agree(tag_of(refuser), tag_of(elsewhere)));
  EXPECT_EQ(refuser.compare(peer.digest_at(peer.next())), Comparison::same);
  EXPECT_EQ(refuser.compare(elsewhere.digest_at(elsewhere.next())), Comparison::different);
}

TEST(CallHistory, as_long_as_nothing_was_refused_31_bits_are_compared) {
  EXPECT_FALSE(histories_agree(1, 2));
  EXPECT_FALSE(histories_agree(0x7fffffff, 0x3fffffff));
  EXPECT_TRUE(histories_agree(5, Signature::some_refused | 6)) << "one of them has not heard of a refusal";
  EXPECT_TRUE(histories_agree(5, Signature::unknown_history));
}

TEST(CallHistory, refusals_that_one_rank_has_not_heard_of_are_told_from_a_difference_whatever_they_are) {
  for (std::uint64_t refused = 1; refused < 2000; ++refused) {
    CallHistory knows, does_not;
    for (std::uint64_t i = 0; i < 2; ++i) {
      Signature call = broadcast_from(0), again = call;
      knows.number(call);
      does_not.number(again);
    }
    knows.take_out(0);
    does_not.take_out(0);
    for (std::uint64_t i = 2; i < refused; ++i) {
      Signature call = broadcast_from(3), again = call;
      knows.number(call);
      does_not.number(again);
    }
    knows.take_out(refused - 1);
    ASSERT_NE(knows.compare(does_not.digest_at(does_not.next())), Comparison::different) << refused;
  }
}

TEST(CallHistory, knows_the_digest_of_earlier_moments_of_the_calls_that_it_keeps) {
  CallHistory ahead, behind;
  for (int i = 0; i < 300; ++i) {
    Signature call = broadcast_from(i), again = call;
    ahead.number(call);
    if (i < 200) behind.number(again);
  }
  ahead.refuse();
  EXPECT_EQ(ahead.compare(behind.digest_at(200)), Comparison::same);
  EXPECT_EQ(behind.compare(ahead.digest_at(301)), Comparison::not_yet);
  EXPECT_EQ(behind.compare(ahead.digest_at(10)), Comparison::same);
  CallDigest other = behind.digest_at(200);
  ++other.sum;
  EXPECT_EQ(ahead.compare(other), Comparison::different);
}

TEST(CallHistory, an_earlier_difference_shows_in_the_next_signature) {
  CallHistory here, there;
  Signature mine = broadcast_from(0), theirs = broadcast_from(1);
  here.number(mine);
  there.number(theirs);
  Signature next = broadcast_from(3), their_next = next;
  here.number(next);
  there.number(their_next);
  EXPECT_TRUE(next.is_same_call(their_next));
  EXPECT_NE(next, their_next);
}

TEST(CallHistory, keeps_calls_that_a_rank_far_behind_may_have_made_differently) {
  CallHistory history;
  for (int i = 0; i < 2000; ++i) {
    Signature call = broadcast_from(i);
    history.note_all_ended();
    history.number(call);
  }
  ASSERT_NE(history.find(3), nullptr) << "a root sends and goes on: nothing says that the others were there";
  EXPECT_EQ(history.find(3)->root, 3);
  EXPECT_TRUE(history.digest_at(4).is_known);
  history.take_out(3);
  EXPECT_EQ(history.find(3), nullptr);
  EXPECT_TRUE(history.digest_at(3).is_known);
}

TEST(CallHistory, keeps_no_more_than_so_many_calls) {
  CallHistory history;
  const int count = static_cast<int>(CallHistory::length + CallHistory::older_length) + 10;
  for (int i = 0; i < count; ++i) {
    Signature call = broadcast_from(i);
    history.number(call);
  }
  EXPECT_EQ(history.find(9), nullptr);
  EXPECT_NE(history.find(10), nullptr);
}

TEST(CallHistory, names_the_latest_calls_and_gives_up_on_settled_ones) {
  CallHistory history;
  for (std::size_t i = 0; i < CallHistory::length + 10; ++i) {
    Signature call = i == 20 ? Signature{.verb = Verb::barrier} : broadcast_from(static_cast<int>(i));
    history.note_all_ended();
    history.number(call);
  }
  EXPECT_EQ(history.find(9), nullptr);
  ASSERT_NE(history.find(10), nullptr);
  EXPECT_EQ(history.find(10)->root, 10);
  EXPECT_EQ(history.recent().size(), CallHistory::length);
  EXPECT_FALSE(history.digest_at(3).is_known);
  history.take_out(3);
  EXPECT_TRUE(histories_agree(tag_of(history), 12345)) << "what is not known is not compared";
  EXPECT_EQ(history.compare({.calls = history.next(), .sum = 1}), Comparison::unknown);
}

}  // namespace
}  // namespace tutti
