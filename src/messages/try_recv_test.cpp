// try_recv_test.cpp: receives that look for their message before they are posted.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/messages.hpp"
#include "tests/support/messages_world.hpp"

namespace tutti::messages {
namespace {

constexpr std::int64_t bytes = 24;

// Two ranks in one thread: what the first sends is in the ring at once.
class TryRecv : public testing::Test {
 protected:
  void SetUp() override {
    for (std::size_t rank = 0; rank < 2; ++rank) endpoints_[rank]->listen(&listeners_[rank]);
    deliver(1, 0);  // the first message carries its whole envelope, and its ring is not open before
    Parcel first = Parcel::from(0, 0, bytes);
    EXPECT_FALSE(take(first));
    finish(first, 1);
  }
  void TearDown() override {
    for (const Recorder& listener : listeners_) EXPECT_TRUE(listener.losses.empty());
  }

  void deliver(std::uint64_t seed, std::uint32_t tag) {
    Parcel parcel = Parcel::to(1, tag, bytes, seed);
    endpoints_[0]->send(*parcel.transfer);
    ASSERT_TRUE(parcel.is_done());
  }
  bool take(Parcel& parcel, int spins = 1) { return endpoints_[1]->try_recv(*parcel.transfer, spins); }
  void finish(Parcel& parcel, std::uint64_t seed) {
    endpoints_[1]->recv(*parcel.transfer);
    for (int i = 0; i < 1000 && parcel.is_pending(); ++i) endpoints_[1]->poll();
    ASSERT_TRUE(parcel.is_done()) << parcel.transfer->error;
    EXPECT_TRUE(parcel.holds(seed));
  }

  std::vector<std::unique_ptr<Messages>> endpoints_ = make_ring_endpoints(2, {});
  std::vector<Recorder> listeners_{2};
};

TEST_F(TryRecv, take_what_is_there) {
  for (std::uint64_t seed = 2; seed < 20'000; ++seed) {  // many times around the ring, and through all credit
    const auto tag = static_cast<std::uint32_t>(seed % 3);
    ASSERT_NO_FATAL_FAILURE(deliver(seed, tag));
    Parcel parcel = Parcel::from(0, tag, bytes);
    ASSERT_TRUE(take(parcel));
    ASSERT_TRUE(parcel.is_done() && parcel.holds(seed)) << seed;
    if (seed % 50 == 0) endpoints_[0]->poll();  // its credit comes back
  }
}

TEST_F(TryRecv, give_up_when_nothing_comes) {
  Parcel parcel = Parcel::from(0, 0, bytes);
  EXPECT_FALSE(take(parcel, 100));
  deliver(2, 0);
  finish(parcel, 2);
}

TEST_F(TryRecv, leave_a_message_for_somebody_else_where_it_is) {
  deliver(2, 5);
  Parcel other = Parcel::from(0, 6, bytes), own = Parcel::from(0, 5, bytes);
  EXPECT_FALSE(take(other));
  EXPECT_TRUE(take(own));
  EXPECT_TRUE(own.holds(2));
}

TEST_F(TryRecv, stand_back_behind_receives_that_were_posted_before) {
  Parcel first = Parcel::from(any_peer, 0, bytes), second = Parcel::from(0, 0, bytes);
  endpoints_[1]->recv(*first.transfer);
  deliver(2, 0);
  deliver(3, 0);
  EXPECT_FALSE(take(second));
  finish(second, 3);
  EXPECT_TRUE(first.is_done() && first.holds(2));
}

TEST_F(TryRecv, stand_back_behind_messages_that_came_before) {
  deliver(2, 1);
  deliver(3, 2);
  Parcel second = Parcel::from(0, 2, bytes), third = Parcel::from(0, 1, bytes);
  EXPECT_FALSE(take(second));
  finish(second, 3);  // the one before it is kept meanwhile
  deliver(4, 1);
  EXPECT_FALSE(take(third));
  finish(third, 2);
  Parcel fourth = Parcel::from(0, 1, bytes);
  finish(fourth, 4);
}

TEST_F(TryRecv, may_have_more_room_than_the_message_needs) {
  deliver(2, 0);
  Parcel parcel = Parcel::from(0, 0, 2 * bytes);
  ASSERT_TRUE(take(parcel));
  EXPECT_EQ(parcel.transfer->envelope.bytes, bytes);
}

TEST_F(TryRecv, leave_it_to_the_usual_way_to_complain_of_too_little_room) {
  deliver(2, 0);
  Parcel parcel = Parcel::from(0, 0, bytes - 1);
  EXPECT_FALSE(take(parcel));
  endpoints_[1]->recv(*parcel.transfer);
  for (int i = 0; i < 1000 && parcel.is_pending(); ++i) endpoints_[1]->poll();
  EXPECT_TRUE(parcel.has_failed());
  EXPECT_EQ(parcel.transfer->refusal, Transfer::Refusal::too_long);
}

}  // namespace
}  // namespace tutti::messages
