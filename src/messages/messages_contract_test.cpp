// messages_contract_test.cpp: what every transport promises about messages that arrive.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "tests/support/messages_world.hpp"

namespace tutti::messages {
namespace {

constexpr std::int64_t large_bytes = (8 << 20) + 3;

TEST_P(MessagesContract, a_message_of_any_size_arrives_whether_it_is_expected_or_not) {
  auto world = world_of(2);
  const std::int64_t eager = world->eager_bytes_max;
  std::uint64_t seed = 0;
  for (const std::int64_t bytes :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{777}, eager - 1, eager, eager + 1, large_bytes}) {
    for (const bool expected : {true, false}) {
      Parcel out = Parcel::to(1, 4, bytes, ++seed), in = Parcel::from(0, 4, bytes);
      if (expected) world->at(1).recv(*in.transfer);
      world->at(0).send(*out.transfer);
      if (!expected) {
        world->settle();
        world->at(1).recv(*in.transfer);
      }
      ASSERT_TRUE(world->drive([&] { return !in.is_pending() && !out.is_pending(); })) << bytes << " bytes";
      ASSERT_TRUE(in.is_done() && out.is_done()) << in.transfer->error << out.transfer->error;
      ASSERT_TRUE(in.holds(seed)) << bytes << " bytes";
      EXPECT_EQ(in.transfer->peer, 0);
      EXPECT_EQ(in.transfer->envelope.bytes, bytes);
    }
  }
  EXPECT_EQ(world->held_bytes(1), 0);
}

TEST_P(MessagesContract, messages_of_one_tag_never_overtake_each_other) {
  auto world = world_of(2);
  Random random(11);
  constexpr std::uint64_t count = 120;
  std::vector<Parcel> out, in;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int64_t bytes = random.between(0, 3) == 0 ? random.between(5'000, 300'000) : random.between(0, 900);
    out.push_back(Parcel::to(1, 1, bytes, i));
    in.push_back(Parcel::from(0, 1, bytes));
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    world->at(0).send(*out[i].transfer);
    if (i % 7 == 0) world->step();
    if (i >= 40) world->at(1).recv(*in[i - 40].transfer);
  }
  for (std::uint64_t i = count - 40; i < count; ++i) world->at(1).recv(*in[i].transfer);
  ASSERT_TRUE(world->drive([&] { return std::ranges::none_of(in, &Parcel::is_pending); }));
  for (std::uint64_t i = 0; i < count; ++i)
    ASSERT_TRUE(in[i].is_done() && in[i].holds(i)) << i << in[i].transfer->error;
}

TEST_P(MessagesContract, tags_are_received_in_any_order) {
  auto world = world_of(2);
  std::vector<Parcel> out, in;
  for (std::uint32_t tag = 0; tag < 9; ++tag) out.push_back(Parcel::to(1, tag, 1000 * tag, tag));
  for (Parcel& parcel : out) world->at(0).send(*parcel.transfer);
  world->settle();
  for (std::uint32_t tag = 9; tag-- > 0;) {
    in.push_back(Parcel::from(0, tag, 1000 * tag));
    world->at(1).recv(*in.back().transfer);
    ASSERT_TRUE(world->drive([&] { return in.back().is_done(); })) << "tag " << tag;
    EXPECT_TRUE(in.back().holds(tag));
  }
}

TEST_P(MessagesContract, collective_messages_are_told_apart_by_call_phase_and_tag) {
  auto world = world_of(2);
  std::vector<Parcel> out, in;
  for (std::uint32_t i = 0; i < 8; ++i) {
    out.push_back(std::move(Parcel::to(1, i % 2, 2500, i).of_call(i / 4, i / 2 % 2)));
    in.push_back(std::move(Parcel::from(0, i % 2, 2500).of_call(i / 4, i / 2 % 2)));
  }
  for (std::size_t i : {3, 0, 6, 5}) world->at(1).recv(*in[i].transfer);
  for (std::size_t i : {7, 6, 5, 4, 3, 2, 1, 0}) world->at(0).send(*out[i].transfer);
  world->settle();
  for (std::size_t i : {1, 2, 4, 7}) world->at(1).recv(*in[i].transfer);
  ASSERT_TRUE(world->drive([&] { return std::ranges::all_of(in, &Parcel::is_done); }));
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(in[i].holds(i)) << i;
}

TEST_P(MessagesContract, a_receive_from_anyone_takes_one_message_and_says_whose) {
  auto world = world_of(4);
  std::vector<Parcel> out, in;
  for (int rank = 1; rank < 4; ++rank) {
    out.push_back(Parcel::to(0, 2, 6000, static_cast<std::uint64_t>(rank)));
    in.push_back(Parcel::from(any_peer, 2, 6000));
  }
  world->at(0).recv(*in[0].transfer);
  for (int rank = 1; rank < 4; ++rank) world->at(rank).send(*out[static_cast<std::size_t>(rank - 1)].transfer);
  ASSERT_TRUE(world->drive([&] { return in[0].is_done(); }));
  world->at(0).recv(*in[1].transfer);
  world->at(0).recv(*in[2].transfer);
  ASSERT_TRUE(world->drive([&] { return std::ranges::all_of(in, &Parcel::is_done); }));
  std::vector<int> sources;
  for (const Parcel& parcel : in) {
    EXPECT_TRUE(parcel.holds(static_cast<std::uint64_t>(parcel.transfer->peer)));
    sources.push_back(parcel.transfer->peer);
  }
  EXPECT_THAT(sources, testing::UnorderedElementsAre(1, 2, 3));
}

TEST_P(MessagesContract, a_flood_that_nobody_receives_is_bounded_and_blocks_nothing) {
  auto world = world_of(2);
  std::vector<Parcel> flood;
  for (std::uint64_t i = 0; i < 400; ++i) flood.push_back(Parcel::to(1, 5, 1000, i));
  for (Parcel& parcel : flood) world->at(0).send(*parcel.transfer);
  world->settle();
  EXPECT_GT(world->held_bytes(1), 0);
  EXPECT_LE(world->held_bytes(1), world->credit_bytes);

  Parcel out = Parcel::to(1, 6, 1000, 9), in = Parcel::from(0, 6, 1000);
  world->at(0).send(*out.transfer);
  world->at(1).recv(*in.transfer);
  ASSERT_TRUE(world->drive([&] { return in.is_done(); })) << "a message that is waited for came after the flood";
  EXPECT_TRUE(in.holds(9));

  for (std::uint64_t i = 0; i < flood.size(); ++i) {
    Parcel late = Parcel::from(0, 5, 1000);
    world->at(1).recv(*late.transfer);
    ASSERT_TRUE(world->drive([&] { return late.is_done(); }));
    ASSERT_TRUE(late.holds(i)) << i;
  }
  ASSERT_TRUE(world->drive([&] { return std::ranges::all_of(flood, &Parcel::is_done); }));
  EXPECT_EQ(world->held_bytes(1), 0);
}

TEST_P(MessagesContract, a_large_send_that_nobody_receives_yet_does_not_hold_up_later_ones) {
  auto world = world_of(2);
  Parcel a = Parcel::to(1, 1, large_bytes, 1), b = Parcel::to(1, 2, large_bytes, 2);
  Parcel in_a = Parcel::from(0, 1, large_bytes), in_b = Parcel::from(0, 2, large_bytes);
  world->at(0).send(*a.transfer);
  world->at(0).send(*b.transfer);
  world->at(1).recv(*in_b.transfer);
  ASSERT_TRUE(world->drive([&] { return in_b.is_done() && b.is_done(); }));
  EXPECT_TRUE(a.is_pending());
  EXPECT_EQ(world->held_bytes(1), 0) << "its bytes wait at the sender";
  world->at(1).recv(*in_a.transfer);
  ASSERT_TRUE(world->drive([&] { return in_a.is_done() && a.is_done(); }));
  EXPECT_TRUE(in_a.holds(1) && in_b.holds(2));
}

TEST_P(MessagesContract, a_message_that_is_too_long_fails_its_receive_only) {
  auto world = world_of(2);
  for (const std::int64_t bytes : {std::int64_t{100}, large_bytes}) {
    for (const bool expected : {true, false}) {
      Parcel out = Parcel::to(1, 1, bytes, 1), next = Parcel::to(1, 1, 50, 2);
      Parcel in = Parcel::from(0, 1, bytes - 1), in_next = Parcel::from(0, 1, 50);
      if (expected) world->at(1).recv(*in.transfer);
      world->at(0).send(*out.transfer);
      world->at(0).send(*next.transfer);
      if (!expected) world->settle();
      if (!expected) world->at(1).recv(*in.transfer);
      world->at(1).recv(*in_next.transfer);
      ASSERT_TRUE(world->drive([&] { return in_next.is_done() && !in.is_pending() && out.is_done(); }));
      EXPECT_TRUE(in.has_failed());
      EXPECT_EQ(in.transfer->refusal, Transfer::Refusal::too_long);
      EXPECT_TRUE(in.is_all(std::byte{0}));
      EXPECT_TRUE(in_next.holds(2));
    }
  }
}

TEST_P(MessagesContract, a_probe_reserves_what_it_finds) {
  auto world = world_of(2);
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{100}, large_bytes}) {
    for (const bool waits : {true, false}) {
      Parcel out = Parcel::to(1, 7, bytes, 1), probe = Parcel::from(any_peer, every_tag, 0);
      Parcel other = Parcel::from(0, 7, bytes), in = Parcel::from(0, 7, bytes);
      probe.transfer->probes = true;
      if (waits) world->at(1).recv(*probe.transfer);
      world->at(0).send(*out.transfer);
      const auto has_found = [&] { return waits ? probe.is_done() : world->at(1).reserve(*probe.transfer); };
      ASSERT_TRUE(world->drive(has_found));
      EXPECT_EQ(probe.transfer->peer, 0);
      EXPECT_EQ(probe.transfer->envelope.tag, 7u);
      EXPECT_EQ(probe.transfer->envelope.bytes, bytes);
      world->at(1).recv(*other.transfer);
      world->settle();
      EXPECT_TRUE(other.is_pending()) << "it is out of reach";
      world->at(1).accept(*probe.transfer, *in.transfer);
      ASSERT_TRUE(world->drive([&] { return in.is_done() && out.is_done(); }));
      EXPECT_TRUE(in.holds(1));
      EXPECT_TRUE(world->at(1).withdraw(*other.transfer));
    }
  }
}

TEST_P(MessagesContract, what_a_probe_lets_go_of_is_for_the_receives_that_wait) {
  auto world = world_of(2);
  for (const std::int64_t bytes : {std::int64_t{100}, large_bytes}) {
    Parcel out = Parcel::to(1, 7, bytes, 1), probe = Parcel::from(0, 7, 0), in = Parcel::from(0, 7, bytes);
    probe.transfer->probes = true;
    world->at(1).recv(*probe.transfer);
    world->at(1).recv(*in.transfer);
    world->at(0).send(*out.transfer);
    ASSERT_TRUE(world->drive([&] { return probe.is_done(); }));
    world->at(1).release(*probe.transfer);
    ASSERT_TRUE(world->drive([&] { return in.is_done() && out.is_done(); }));
    EXPECT_TRUE(in.holds(1));
  }
}

TEST_P(MessagesContract, a_send_is_given_back_unless_a_receive_or_a_probe_has_found_it) {
  auto world = world_of(2);
  Parcel lonely = Parcel::to(1, 1, large_bytes, 1);
  world->at(0).send(*lonely.transfer);
  world->settle();
  if (!world->at(0).withdraw(*lonely.transfer)) {
    ASSERT_TRUE(world->drive([&] { return lonely.has_failed(); }));
    EXPECT_EQ(lonely.transfer->refusal, Transfer::Refusal::asked_back);
  }
  Parcel probed = Parcel::to(1, 1, large_bytes, 2), probe = Parcel::from(0, 1, 0), in = Parcel::from(0, 1, large_bytes);
  probe.transfer->probes = true;
  world->at(1).recv(*probe.transfer);
  world->at(0).send(*probed.transfer);
  ASSERT_TRUE(world->drive([&] { return probe.is_done(); }));
  EXPECT_FALSE(world->at(0).withdraw(*probed.transfer));
  world->settle();
  EXPECT_TRUE(probed.is_pending());
  world->at(1).release(*probe.transfer);  // it was asked back meanwhile
  ASSERT_TRUE(world->drive([&] { return probed.has_failed(); }));
  Parcel taken = Parcel::to(1, 1, large_bytes, 3);
  world->at(1).recv(*in.transfer);
  world->at(0).send(*taken.transfer);
  static_cast<void>(world->at(0).withdraw(*taken.transfer));
  ASSERT_TRUE(world->drive([&] { return !taken.is_pending() || in.is_done(); }));
  EXPECT_TRUE(!in.is_done() || in.holds(3));
  world->at(1).cancel(*in.transfer);
}

TEST_P(MessagesContract, large_messages_cross_each_other) {
  auto world = world_of(2);
  std::vector<Parcel> out, in;
  for (int i = 0; i < 6; ++i) {
    out.push_back(Parcel::to(1 - i % 2, 1, large_bytes, static_cast<std::uint64_t>(i)));
    in.push_back(Parcel::from(i % 2, 1, large_bytes));
    world->at(1 - i % 2).recv(*in.back().transfer);
    world->at(i % 2).send(*out.back().transfer);
  }
  ASSERT_TRUE(world->drive([&] { return std::ranges::none_of(in, &Parcel::is_pending); }));
  for (std::uint64_t i = 0; i < 6; ++i) EXPECT_TRUE(in[i].is_done() && in[i].holds(i)) << in[i].transfer->error;
}

TEST_P(MessagesContract, control_messages_pass_data_that_is_stuck) {
  auto world = world_of(2);
  std::vector<Parcel> stuck;
  for (int i = 0; i < 80; ++i) stuck.push_back(Parcel::to(1, 1, i % 2 == 0 ? 1000 : 500'000));
  for (Parcel& parcel : stuck) world->at(0).send(*parcel.transfer);
  for (int i = 0; i < 3; ++i)
    world->at(0).post(1, std::vector(static_cast<std::size_t>(i) * 30'000, static_cast<std::byte>(i)));
  Recorder& heard = world->listeners[1];
  ASSERT_TRUE(world->drive([&] { return heard.controls.size() == 3; }));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(heard.controls[i].first, 0);
    EXPECT_EQ(heard.controls[i].second, std::vector(i * 30'000, static_cast<std::byte>(i)));
  }
  world->at(1).post(0, std::vector(3, std::byte{9}));
  ASSERT_TRUE(world->drive([&] { return world->listeners[0].controls.size() == 1; })) << "and the way back";
  for (Parcel& parcel : stuck) world->at(0).cancel(*parcel.transfer);
}

TEST_P(MessagesContract, nine_ranks_exchange_random_messages) {
  constexpr int size = 9;
  auto world = world_of(size);
  Random random(GetParam().name[0]);
  struct Pair {
    int source, destination;
    Parcel out, in;
    std::uint64_t seed;
  };
  std::vector<Pair> pairs;
  for (std::uint64_t seed = 0; seed < 900; ++seed) {
    const int source = static_cast<int>(random.below(size)), destination = static_cast<int>(random.below(size));
    if (source == destination) continue;
    const std::int64_t bytes = random.below(4) == 0 ? random.between(0, 150'000) : random.between(0, 2'000);
    pairs.push_back({source, destination,
                     std::move(Parcel::to(destination, static_cast<std::uint32_t>(seed), bytes, seed).of_call(1)),
                     std::move(Parcel::from(source, static_cast<std::uint32_t>(seed), bytes).of_call(1)), seed});
  }
  std::vector<std::size_t> order(2 * pairs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t i : order) {
    Pair& pair = pairs[i / 2];
    if (i % 2 == 0) world->at(pair.source).send(*pair.out.transfer);
    if (i % 2 == 1) world->at(pair.destination).recv(*pair.in.transfer);
    if (random.below(8) == 0) world->step();
  }
  ASSERT_TRUE(world->drive([&] {
    return std::ranges::all_of(pairs, [](const Pair& pair) { return pair.in.is_done() && pair.out.is_done(); });
  }));
  for (const Pair& pair : pairs) ASSERT_TRUE(pair.in.holds(pair.seed)) << pair.source << " to " << pair.destination;
  for (int rank = 0; rank < size; ++rank) EXPECT_EQ(world->held_bytes(rank), 0);
}

INSTANTIATE_TEST_SUITE_P(messages, MessagesContract, testing::ValuesIn(all_world_kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace tutti::messages
