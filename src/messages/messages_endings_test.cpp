// messages_endings_test.cpp: what every transport promises about messages that do not arrive: cancelled, forgotten,
// dropped, or of a rank that is gone.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/messages_world.hpp"

namespace tutti::messages {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class MessagesEndings : public MessagesContract {
 protected:
  // The two ranks know each other, so that a few steps take a message from one stage to the next.
  static std::unique_ptr<MessagesWorld> connected_world() {
    auto world = world_of(2);
    Parcel out = Parcel::to(1, 0, 100'000), in = Parcel::from(0, 0, 100'000);
    world->at(0).send(*out.transfer);
    world->at(1).recv(*in.transfer);
    EXPECT_TRUE(world->drive([&] { return in.is_done() && out.is_done(); }));
    return world;
  }
  // After whatever happened before, messages still come through in order.
  static void expect_good_order(MessagesWorld& world) {
    for (const std::int64_t bytes : {std::int64_t{10}, std::int64_t{300'000}}) {
      Parcel out = Parcel::to(1, 999, bytes, 4), in = Parcel::from(0, 999, bytes);
      world.at(0).send(*out.transfer);
      world.at(1).recv(*in.transfer);
      ASSERT_TRUE(world.drive([&] { return in.is_done() && out.is_done(); })) << bytes;
      EXPECT_TRUE(in.holds(4));
    }
  }
};

constexpr std::int64_t cancel_sizes[] = {0, 2'000, 40'000, 5'000'000};

TEST_P(MessagesEndings, a_cancelled_send_leaves_its_memory_alone_at_every_stage) {
  auto world = connected_world();
  for (const std::int64_t bytes : cancel_sizes) {
    for (int stage = 0; stage < 16; ++stage) {
      Parcel out = Parcel::to(1, 1, bytes, 7), in = Parcel::from(0, 1, bytes);
      if (stage % 2 == 0) world->at(1).recv(*in.transfer);
      world->at(0).send(*out.transfer);
      for (int step = 0; step < stage / 2; ++step) world->step();
      world->at(0).cancel(*out.transfer);
      EXPECT_FALSE(out.is_pending());
      out.fill(std::byte{0xEE});
      out = Parcel::to(1, 2, 1);  // the memory and the transfer are gone
      world->settle();
      if (stage % 2 == 1) world->at(1).recv(*in.transfer);
      world->settle();
      if (in.is_done()) {
        EXPECT_TRUE(in.holds(7)) << bytes << " bytes, stage " << stage;
      } else if (in.has_failed()) {
        EXPECT_THAT(in.transfer->error, HasSubstr("rank 0"));
      }
      world->at(1).cancel(*in.transfer);
    }
  }
  expect_good_order(*world);
  EXPECT_TRUE(world->listeners[0].losses.empty() && world->listeners[1].losses.empty());
}

TEST_P(MessagesEndings, a_cancelled_receive_leaves_its_memory_alone_at_every_stage) {
  auto world = connected_world();
  std::uint32_t tag = 10;
  for (const std::int64_t bytes : cancel_sizes) {
    for (int stage = 0; stage < 16; ++stage, ++tag) {
      Parcel out = Parcel::to(1, tag, bytes, 7), in = Parcel::from(0, tag, bytes);
      if (stage % 2 == 0) world->at(1).recv(*in.transfer);
      world->at(0).send(*out.transfer);
      for (int step = 0; step < stage / 2; ++step) world->step();
      if (stage % 2 == 1) world->at(1).recv(*in.transfer);
      world->at(1).cancel(*in.transfer);
      EXPECT_FALSE(in.is_pending());
      in.fill(std::byte{0xAA});
      world->settle();
      EXPECT_TRUE(in.is_all(std::byte{0xAA})) << bytes << " bytes, stage " << stage;
      world->at(0).cancel(*out.transfer);  // where nobody had taken it yet
    }
  }
  expect_good_order(*world);
  EXPECT_TRUE(world->listeners[0].losses.empty() && world->listeners[1].losses.empty());
}

TEST_P(MessagesEndings, a_receive_that_is_given_up_leaves_its_message_to_the_next_one_at_every_stage) {
  auto world = connected_world();
  std::uint32_t tag = 10;
  for (const std::int64_t bytes : cancel_sizes) {
    for (int stage = 0; stage < 16; ++stage, ++tag) {
      Parcel out = Parcel::to(1, tag, bytes, 7), after = Parcel::to(1, tag, bytes, 8);
      Parcel first = Parcel::from(0, tag, bytes), second = Parcel::from(0, tag, bytes);
      Parcel third = Parcel::from(stage % 3 == 0 ? any_peer : 0, tag, bytes), last = Parcel::from(0, tag, bytes);
      world->at(1).recv(*first.transfer);
      world->at(0).send(*out.transfer);
      world->at(0).send(*after.transfer);
      for (int step = 0; step < stage / 2; ++step) world->step();
      world->at(1).give_back(*first.transfer);
      EXPECT_EQ(first.transfer->state, Transfer::State::idle);
      first.fill(std::byte{0xAA});
      if (stage % 2 == 1) {  // given up again, by the one that waits for the rest
        world->at(1).recv(*second.transfer);
        for (int step = 0; step < stage / 6; ++step) world->step();
        world->at(1).give_back(*second.transfer);
        second.fill(std::byte{0xBB});
      }
      if (stage % 4 < 2) world->settle();
      world->at(1).recv(*third.transfer);
      world->at(1).recv(*last.transfer);
      ASSERT_TRUE(world->drive([&] { return !third.is_pending() && !last.is_pending() && !out.is_pending(); }))
          << bytes << " bytes, stage " << stage;
      EXPECT_TRUE(third.is_done() && third.holds(7)) << bytes << " bytes, stage " << stage << third.transfer->error;
      EXPECT_TRUE(last.is_done() && last.holds(8)) << bytes << " bytes, stage " << stage << last.transfer->error;
      EXPECT_TRUE(first.is_all(std::byte{0xAA})) << bytes << " bytes, stage " << stage;
      EXPECT_TRUE(stage % 2 == 0 || second.is_all(std::byte{0xBB})) << bytes << " bytes, stage " << stage;
      ASSERT_TRUE(world->drive([&] { return after.is_done(); }));
    }
  }
  EXPECT_EQ(world->held_bytes(1), 0);
  expect_good_order(*world);
}

TEST_P(MessagesEndings, a_message_that_is_given_back_goes_to_a_receive_that_waits_for_such_a_one) {
  auto world = connected_world();
  std::uint32_t tag = 10;
  for (const std::int64_t bytes : cancel_sizes) {
    for (int stage = 0; stage < 12; ++stage, ++tag) {
      Parcel out = Parcel::to(1, tag, bytes, 7);
      Parcel first = Parcel::from(0, tag, bytes), second = Parcel::from(stage % 2 == 0 ? any_peer : 0, tag, bytes);
      world->at(1).recv(*first.transfer);
      world->at(1).recv(*second.transfer);
      world->at(0).send(*out.transfer);
      for (int step = 0; step < stage; ++step) world->step();
      world->at(1).give_back(*first.transfer);
      ASSERT_TRUE(world->drive([&] { return !second.is_pending(); })) << bytes << " bytes, stage " << stage;
      EXPECT_TRUE(second.is_done() && second.holds(7)) << bytes << " bytes, stage " << stage;
      ASSERT_TRUE(world->drive([&] { return out.is_done(); }));
    }
  }
  EXPECT_EQ(world->held_bytes(1), 0);
  expect_good_order(*world);
}

TEST_P(MessagesEndings, a_receive_goes_on_waiting_when_its_sender_withdraws_the_message_at_any_stage) {
  auto world = connected_world();
  for (const int from : {0, any_peer}) {
    for (const std::int64_t bytes : {std::int64_t{400'000}, std::int64_t{5'000'000}}) {
      for (int steps = 0; steps < 12; ++steps) {
        Parcel in = Parcel::from(from, 6, bytes), behind = Parcel::from(from, 6, bytes);
        if (steps % 2 == 0) world->at(1).recv(*in.transfer);
        Parcel withdrawn = Parcel::to(1, 6, bytes, 7), out = Parcel::to(1, 6, bytes, 8),
               last = Parcel::to(1, 6, bytes, 9);
        world->at(0).send(*withdrawn.transfer);
        for (int step = 0; step < steps / 2; ++step) world->step();
        world->at(0).cancel(*withdrawn.transfer);
        world->at(0).send(*out.transfer);
        world->at(0).send(*last.transfer);
        if (steps % 2 == 1) world->at(1).recv(*in.transfer);
        world->at(1).recv(*behind.transfer);
        ASSERT_TRUE(world->drive([&] { return !in.is_pending() && !behind.is_pending(); })) << steps << " steps";
        ASSERT_TRUE(in.is_done() && behind.is_done()) << in.transfer->error << behind.transfer->error;
        if (in.holds(7)) {  // it had arrived before it was withdrawn
          EXPECT_TRUE(behind.holds(8));
          in = Parcel::from(from, 6, bytes);
          world->at(1).recv(*in.transfer);
          ASSERT_TRUE(world->drive([&] { return in.is_done(); }));
          EXPECT_TRUE(in.holds(9));
        } else {
          EXPECT_TRUE(in.holds(8) && behind.holds(9)) << bytes << " bytes, " << steps << " steps";
        }
        ASSERT_TRUE(world->drive([&] { return out.is_done() && last.is_done(); }));
      }
    }
  }
  EXPECT_EQ(world->held_bytes(1), 0);
  expect_good_order(*world);
}

TEST_P(MessagesEndings, the_rest_of_a_message_that_was_given_back_may_never_come_or_never_be_wanted) {
  constexpr std::int64_t bytes = 5'000'000;
  enum class End { cancelled, forgotten, taken_back, lost, lost_while_waiting };
  for (const End end : {End::cancelled, End::forgotten, End::taken_back, End::lost, End::lost_while_waiting}) {
    for (const int steps : {2, 4, 8}) {
      auto world = connected_world();
      Parcel out = Parcel::to(1, 5, bytes, 7), first = Parcel::from(0, 5, bytes), second = Parcel::from(0, 5, bytes);
      world->at(1).recv(*first.transfer);
      world->at(0).send(*out.transfer);
      for (int step = 0; step < steps; ++step) world->step();
      world->at(1).give_back(*first.transfer);
      const bool waits = end == End::cancelled || end == End::lost_while_waiting;
      if (waits) world->at(1).recv(*second.transfer);
      if (end == End::cancelled) world->at(1).cancel(*second.transfer);
      if (end == End::forgotten) world->at(1).forget(out.transfer->envelope.group, every_sequence);
      if (end == End::taken_back) world->at(0).cancel(*out.transfer);
      if (end == End::lost || end == End::lost_while_waiting) world->kill(0);
      world->settle();
      if (end == End::lost_while_waiting) {
        ASSERT_TRUE(world->drive([&] { return !second.is_pending(); }));
      }
      EXPECT_TRUE(second.is_done() || second.is_all(std::byte{0}) || second.has_failed());
      EXPECT_TRUE(!second.is_done() || second.holds(7));
      if (end == End::cancelled || end == End::forgotten) {
        EXPECT_EQ(world->held_bytes(1), 0) << static_cast<int>(end) << ", " << steps << " steps";
        expect_good_order(*world);
      }
    }
  }
}

TEST_P(MessagesEndings, forget_drops_what_a_call_left_behind_and_nothing_else) {
  auto world = connected_world();
  std::vector<Parcel> out;
  for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) {
    out.push_back(std::move(Parcel::to(1, 0, 900, sequence).of_call(sequence)));
    out.push_back(std::move(Parcel::to(1, 1, 90'000, sequence).of_call(sequence)));
  }
  for (Parcel& parcel : out) world->at(0).send(*parcel.transfer);
  Parcel direct = Parcel::to(1, 3, 900, 8);
  world->at(0).send(*direct.transfer);
  world->settle();
  const std::int64_t held = world->held_bytes(1);
  world->at(1).forget(3, 2);
  EXPECT_LT(world->held_bytes(1), held);
  ASSERT_TRUE(world->drive([&] { return out[1].is_done() && out[3].is_done(); })) << "nobody waits for those any more";
  EXPECT_TRUE(out[5].is_pending());
  for (std::uint64_t sequence = 3; sequence <= 4; ++sequence) {
    Parcel small = std::move(Parcel::from(0, 0, 900).of_call(sequence));
    Parcel large = std::move(Parcel::from(0, 1, 90'000).of_call(sequence));
    world->at(1).recv(*small.transfer);
    world->at(1).recv(*large.transfer);
    ASSERT_TRUE(world->drive([&] { return small.is_done() && large.is_done(); }));
    EXPECT_TRUE(small.holds(sequence) && large.holds(sequence));
  }
  Parcel in = Parcel::from(0, 3, 900);
  world->at(1).recv(*in.transfer);
  ASSERT_TRUE(world->drive([&] { return in.is_done(); }));
  EXPECT_TRUE(in.holds(8));
}

TEST_P(MessagesEndings, what_the_listener_drops_is_sent_but_never_received) {
  auto world = connected_world();
  world->listeners[1].verdict = [](int peer, const Envelope& envelope) {
    EXPECT_EQ(peer, 0);
    return envelope.tag == 13 ? TransportListener::Verdict::drop : TransportListener::Verdict::keep;
  };
  Parcel in = Parcel::from(0, 13, 70'000);
  world->at(1).recv(*in.transfer);
  for (const std::int64_t bytes : {std::int64_t{500}, std::int64_t{70'000}}) {
    Parcel out = Parcel::to(1, 13, bytes);
    world->at(0).send(*out.transfer);
    ASSERT_TRUE(world->drive([&] { return out.is_done(); })) << bytes;
  }
  world->settle();
  EXPECT_TRUE(in.is_pending() && in.is_all(std::byte{0}));
  EXPECT_EQ(world->held_bytes(1), 0);
  world->at(1).cancel(*in.transfer);
  expect_good_order(*world);
}

TEST_P(MessagesEndings, a_goodbye_is_no_loss_and_what_was_sent_before_it_arrives) {
  auto world = connected_world();
  world->at(0).attach(1);
  world->settle();
  Parcel out = Parcel::to(1, 1, 700, 3);
  world->at(0).send(*out.transfer);
  ASSERT_TRUE(world->drive([&] { return out.is_done() && world->at(0).is_flushed(); }));
  world->at(0).close(world->clock().now() + 5s);
  Parcel in = Parcel::from(0, 1, 700), never = Parcel::from(0, 2, 700), anyone = Parcel::from(any_peer, 2, 700);
  for (Parcel* parcel : {&in, &never, &anyone}) world->at(1).recv(*parcel->transfer);
  ASSERT_TRUE(world->drive([&] { return !in.is_pending() && !never.is_pending(); }));
  EXPECT_TRUE(in.is_done() && in.holds(3)) << in.transfer->error;
  EXPECT_TRUE(never.has_failed());
  EXPECT_THAT(never.transfer->error, HasSubstr("rank 0"));
  EXPECT_TRUE(anyone.is_pending());
  Parcel late = Parcel::to(0, 1, 10);
  world->at(1).send(*late.transfer);
  ASSERT_TRUE(world->drive([&] { return !late.is_pending(); }));
  EXPECT_TRUE(late.has_failed());
  EXPECT_TRUE(world->listeners[1].losses.empty());
  world->at(1).cancel(*anyone.transfer);
}

TEST_P(MessagesEndings, a_rank_that_leaves_refuses_messages_and_goes_on_with_collectives) {
  auto world = connected_world();
  Parcel before = Parcel::to(1, 1, 90'000), found = Parcel::to(1, 2, 90'000), after = Parcel::to(1, 3, 90'000);
  Parcel small = Parcel::to(1, 4, 50), self = Parcel::to(0, 5, 5'000'000), self_later = Parcel::to(0, 6, 5'000'000);
  Parcel in = Parcel::from(0, 2, 90'000);
  for (Parcel* parcel : {&before, &found}) world->at(0).send(*parcel->transfer);
  world->at(1).recv(*in.transfer);
  world->at(0).send(*self.transfer);
  world->settle();
  EXPECT_TRUE(before.is_pending() && self.is_pending());
  for (const int rank : {0, 1}) world->at(rank).refuse_messages();
  for (Parcel* parcel : {&after, &small, &self_later}) world->at(0).send(*parcel->transfer);
  ASSERT_TRUE(world->drive([&] {
    return !before.is_pending() && !after.is_pending() && !small.is_pending() && !self.is_pending() &&
           !self_later.is_pending();
  })) << "both refuse: nobody waits for the other one";
  for (const Parcel* parcel : {&before, &after, &self, &self_later})
    EXPECT_EQ(parcel->transfer->refusal, Transfer::Refusal::receiver_left);
  EXPECT_TRUE(found.is_done() && in.is_done()) << "its receive had found it";
  EXPECT_EQ(world->held_bytes(1), 0);
  Parcel out = std::move(Parcel::to(1, 0, 90'000, 8).of_call(7)),
         call = std::move(Parcel::from(0, 0, 90'000).of_call(7));
  world->at(0).send(*out.transfer);
  world->at(1).recv(*call.transfer);
  ASSERT_TRUE(world->drive([&] { return out.is_done() && call.is_done(); }));
  EXPECT_TRUE(call.holds(8));
}

TEST_P(MessagesEndings, a_rank_that_dies_is_lost_to_all_others_once) {
  auto world = world_of(3);
  for (int rank : {0, 1}) world->at(rank).attach(2);
  world->settle();
  Parcel out = Parcel::to(2, 1, 3'000'000), in = Parcel::from(2, 1, 40), anyone = Parcel::from(any_peer, 1, 40);
  world->at(0).send(*out.transfer);
  world->at(0).recv(*in.transfer);
  world->at(0).recv(*anyone.transfer);
  world->settle();
  world->kill(2);
  ASSERT_TRUE(world->drive([&] { return !world->listeners[0].losses.empty() && !world->listeners[1].losses.empty(); }));
  EXPECT_TRUE(out.has_failed() && in.has_failed());
  EXPECT_THAT(out.transfer->error, HasSubstr("rank 2"));
  EXPECT_THAT(in.transfer->error, HasSubstr("rank 2"));
  EXPECT_TRUE(anyone.is_pending());
  Parcel late = Parcel::to(2, 1, 10), late_in = Parcel::from(2, 1, 10);
  world->at(0).send(*late.transfer);
  world->at(0).recv(*late_in.transfer);
  world->settle();
  EXPECT_TRUE(late.has_failed() && late_in.has_failed());
  for (int rank : {0, 1}) {
    const auto& losses = world->listeners[static_cast<std::size_t>(rank)].losses;
    ASSERT_EQ(losses.size(), 1u);
    EXPECT_EQ(losses[0].first, 2);
    EXPECT_FALSE(losses[0].second.empty());
  }
  Parcel other = Parcel::to(0, 1, 40, 5);
  world->at(1).send(*other.transfer);
  ASSERT_TRUE(world->drive([&] { return anyone.is_done(); })) << "the survivors go on";
  EXPECT_TRUE(anyone.holds(5));
}

TEST_P(MessagesEndings, a_rank_that_dies_in_the_middle_of_a_message_fails_its_receive) {
  auto world = connected_world();
  Parcel out = Parcel::to(1, 1, 30'000'000), in = Parcel::from(0, 1, 30'000'000);
  world->at(1).recv(*in.transfer);
  world->at(0).send(*out.transfer);
  for (int step = 0; step < 4; ++step) world->step();
  ASSERT_TRUE(in.is_pending());
  world->kill(0);
  ASSERT_TRUE(world->drive([&] { return !in.is_pending(); }));
  EXPECT_TRUE(in.has_failed());
  ASSERT_TRUE(world->drive([&] { return world->listeners[1].losses.size() == 1; }));
}

INSTANTIATE_TEST_SUITE_P(endings, MessagesEndings, testing::ValuesIn(all_world_kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace tutti::messages
