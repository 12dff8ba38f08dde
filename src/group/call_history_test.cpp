// call_history_test.cpp: which programs have the same digest, and which calls it can still name.
// SPDX-License-Identifier: Apache-2.0
#include "group/call_history.hpp"

#include <gtest/gtest.h>

namespace tutti {
namespace {

Signature broadcast_from(int root) {
  return {.verb = Verb::broadcast, .dtype = DType::float32, .root = root, .count = 3};
}

std::uint32_t tag_after(std::initializer_list<Signature> calls) {
  CallHistory history;
  for (Signature call : calls) history.number(call);
  return *history.tag_at(history.next());
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
  EXPECT_EQ(*refuser.tag_at(refuser.next()), *peer.tag_at(peer.next()));
  EXPECT_FALSE(histories_agree(*refuser.tag_at(refuser.next()), *elsewhere.tag_at(elsewhere.next())));
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

TEST(CallHistory, names_the_latest_calls_and_gives_up_on_older_ones) {
  CallHistory history;
  for (std::size_t i = 0; i < CallHistory::length + 10; ++i) {
    Signature call = broadcast_from(static_cast<int>(i));
    history.number(call);
  }
  EXPECT_EQ(history.find(9), nullptr);
  ASSERT_NE(history.find(10), nullptr);
  EXPECT_EQ(history.find(10)->root, 10);
  EXPECT_EQ(history.recent().size(), CallHistory::length);
  EXPECT_FALSE(history.tag_at(3).has_value());
  history.take_out(3);
  EXPECT_TRUE(histories_agree(*history.tag_at(history.next()), 12345)) << "what is not known is not compared";
}

}  // namespace
}  // namespace tutti
