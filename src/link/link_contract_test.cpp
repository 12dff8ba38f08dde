// link_contract_test.cpp: what every link promises (link.hpp).
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <set>

#include "tests/support/link_world.hpp"

namespace tutti::link {
namespace {

using namespace std::chrono_literals;

class LinkContract : public testing::TestWithParam<LinkKind> {
 protected:
  std::unique_ptr<LinkWorld> world = GetParam().make();

  // Sends, as soon as there is room.
  Link::Taken send(int from, FrameOrder order, const Frame& frame, void* owner = nullptr) {
    Link::Taken taken = Link::Taken::no_room;
    EXPECT_TRUE(world->drive([&] {
      taken = world->at(from).send(1 - from, order, frame, owner);
      return taken != Link::Taken::no_room;
    }));
    return taken;
  }
  bool drive_until_heard(int rank, std::size_t count) {
    return world->drive([&] { return world->heard[rank].whole_count() >= count; });
  }
};

// A head that holds a number.
struct Head {
  std::uint64_t number = 0;
  [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_bytes(std::span(&number, 1)); }
};

std::uint64_t number_of(const LinkRecorder::Arrived& frame) {
  std::uint64_t number = 0;
  std::memcpy(&number, frame.head.data(), sizeof number);
  return number;
}

std::vector<std::byte> filled(std::int64_t bytes, std::uint64_t value) {
  return std::vector(static_cast<std::size_t>(bytes), static_cast<std::byte>(value));
}

TEST_P(LinkContract, frames_of_every_size_arrive_whole_and_in_order) {
  const Link::Limits limits = world->at(0).limits();
  ASSERT_GE(limits.credit_bytes, 2 * credit_cost(limits.eager_bytes_max));
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint64_t i = 0; i < 60; ++i) payloads.push_back(filled(i % 10 == 9 ? limits.eager_bytes_max : 37 * i, i));
  for (std::uint64_t i = 0; i < payloads.size(); ++i) {
    const Head head{i};
    const auto type = static_cast<std::uint8_t>(1 + i % frame_type_max);
    send(0, FrameOrder::message, {.type = type, .head = head.bytes(), .payload = payloads[i]}, &payloads[i]);
  }
  ASSERT_TRUE(drive_until_heard(1, payloads.size()));
  for (std::uint64_t i = 0; i < payloads.size(); ++i) {
    const LinkRecorder::Arrived& frame = world->heard[1].frames[i];
    EXPECT_EQ(frame.peer, 0);
    EXPECT_EQ(frame.type, 1 + i % frame_type_max);
    ASSERT_EQ(number_of(frame), i);
    ASSERT_EQ(frame.payload, payloads[i]) << i;
  }
}

TEST_P(LinkContract, a_head_of_the_greatest_length_arrives) {
  std::array<std::byte, frame_head_bytes_max> head;
  head.fill(std::byte{7});
  send(0, FrameOrder::message, {.type = 3, .head = head});
  ASSERT_TRUE(drive_until_heard(1, 1));
  EXPECT_TRUE(std::ranges::equal(world->heard[1].frames[0].head, head));
}

TEST_P(LinkContract, fragments_arrive_each_once) {
  const std::int64_t bytes = world->at(0).limits().fragment_bytes_max;
  world->at(0).prepare_bulk(1);
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint64_t i = 0; i < 12; ++i) payloads.push_back(filled(bytes, i));
  for (std::uint64_t i = 0; i < payloads.size(); ++i) {
    const Head head{i};
    send(0, FrameOrder::bulk, {.type = 5, .head = head.bytes(), .payload = payloads[i]}, &payloads[i]);
  }
  ASSERT_TRUE(drive_until_heard(1, payloads.size()));
  std::set<std::uint64_t> seen;
  for (const LinkRecorder::Arrived& frame : world->heard[1].frames) {
    EXPECT_TRUE(seen.insert(number_of(frame)).second);
    ASSERT_EQ(frame.payload, payloads[number_of(frame)]);
  }
}

TEST_P(LinkContract, replies_find_their_way_back) {
  const Head head{1};
  send(0, FrameOrder::message, {.type = 1, .head = head.bytes()});
  ASSERT_TRUE(drive_until_heard(1, 1));
  for (std::uint64_t i = 0; i < 40; ++i) send(1, FrameOrder::reply, {.type = 2, .head = Head{i}.bytes()});
  ASSERT_TRUE(drive_until_heard(0, 40));
  for (std::uint64_t i = 0; i < 40; ++i) EXPECT_EQ(number_of(world->heard[0].frames[i]), i);
}

TEST_P(LinkContract, a_link_that_has_no_room_says_so_and_takes_more_once_the_peer_has_read) {
  const auto payload = filled(world->at(0).limits().eager_bytes_max, 4);
  std::uint64_t count = 0;
  const auto next = [&] {
    const Head head{count};
    return world->at(0).send(1, FrameOrder::message, {.type = 1, .head = head.bytes(), .payload = payload}, this);
  };
  while (count < 20'000 && next() != Link::Taken::no_room) ++count;
  EXPECT_LT(count, 20'000u);
  const Head head{count};
  send(0, FrameOrder::message, {.type = 1, .head = head.bytes(), .payload = payload}, this);
  ASSERT_TRUE(drive_until_heard(1, count + 1));
  for (std::uint64_t i = 0; i <= count; ++i) ASSERT_EQ(number_of(world->heard[1].frames[i]), i);
}

TEST_P(LinkContract, a_queued_frame_is_reported_once_it_is_sent_and_not_before_send_returns) {
  const auto payload = filled(1000, 4);
  std::size_t queued = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::size_t told = world->heard[0].sent_frames.size();
    const Link::Taken taken = world->at(0).send(1, FrameOrder::message, {.type = 1, .payload = payload}, this);
    EXPECT_EQ(world->heard[0].sent_frames.size(), told);
    queued += taken == Link::Taken::queued;
    if (taken == Link::Taken::no_room) world->step();
  }
  EXPECT_TRUE(world->drive([&] { return world->heard[0].sent_frames.size() >= queued && world->at(0).is_flushed(); }));
  EXPECT_EQ(world->heard[0].sent_frames.size(), queued);
  for (const auto& [owner, bytes] : world->heard[0].sent_frames) {
    EXPECT_EQ(owner, this);
    EXPECT_EQ(bytes, 1000);
  }
}

TEST_P(LinkContract, memory_that_was_withdrawn_is_not_read) {
  const std::int64_t bytes = world->at(0).limits().eager_bytes_max;
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint64_t i = 0; i < 12; ++i) payloads.push_back(filled(bytes, i));
  std::size_t taken_count = 0, vanished = 0, queued = 0;
  for (std::uint64_t i = 0; i < payloads.size(); ++i) {
    const Head head{i};
    const Frame frame{.type = 1, .head = head.bytes(), .payload = payloads[i]};
    const Link::Taken taken = world->at(0).send(1, FrameOrder::message, frame, &payloads[i]);
    taken_count += taken != Link::Taken::no_room;
    if (taken != Link::Taken::queued) continue;
    ++queued;
    for (std::uint64_t step = 0; step < i; ++step) world->step();
    const bool was_told =
        std::ranges::any_of(world->heard[0].sent_frames, [&](const auto& sent) { return sent.first == &payloads[i]; });
    if (was_told) continue;
    vanished += world->at(0).withdraw(1, &payloads[i]);
    std::ranges::fill(payloads[i], std::byte{0xEE});
  }
  ASSERT_TRUE(drive_until_heard(1, taken_count - vanished));
  world->settle();
  EXPECT_EQ(world->heard[1].frames.size(), taken_count - vanished);
  for (const LinkRecorder::Arrived& frame : world->heard[1].frames)
    EXPECT_EQ(frame.payload, filled(bytes, number_of(frame)));
}

TEST_P(LinkContract, a_payload_that_is_not_wanted_is_thrown_away_and_the_next_frame_is_whole) {
  world->heard[1].discards = true;
  const auto payload = filled(world->at(0).limits().eager_bytes_max, 9);
  for (int i = 0; i < 3; ++i) send(0, FrameOrder::message, {.type = 1, .payload = payload}, this);
  ASSERT_TRUE(drive_until_heard(1, 3));
  world->heard[1].discards = false;
  send(0, FrameOrder::message, {.type = 2, .payload = payload}, this);
  ASSERT_TRUE(drive_until_heard(1, 4));
  EXPECT_EQ(world->heard[1].frames[3].payload, payload);
}

TEST_P(LinkContract, a_peer_whose_frames_make_no_sense_is_lost_once) {
  world->heard[1].rejects = true;
  const auto payload = filled(world->at(0).limits().eager_bytes_max, 9);
  send(0, FrameOrder::message, {.type = 1}, this);
  send(0, FrameOrder::message, {.type = 1, .payload = payload}, this);
  ASSERT_TRUE(world->drive([&] { return !world->heard[1].lost_peers.empty(); }));
  world->settle();
  EXPECT_THAT(world->heard[1].lost_peers, testing::ElementsAre(0));
}

class RemoteMemory : public LinkContract {
 protected:
  // Reads on until the read is over.
  GetStatus finish(RemoteGet& get, std::int64_t bytes_per_step) {
    GetStatus status = GetStatus::moving;
    EXPECT_TRUE(world->drive([&] {
      status = world->at(1).get(get, bytes_per_step);
      world->step();
      return status != GetStatus::moving;
    }));
    return status;
  }
  std::vector<std::byte> memory = filled(300'001, 5);
  std::vector<std::byte> room = filled(300'001, 0);
};

TEST_P(RemoteMemory, of_a_peer_is_read_while_it_is_exposed) {
  const RemoteKey key = world->at(0).expose(memory);
  EXPECT_TRUE(world->at(1).is_exposed(0, key, 300'001));
  RemoteGet get{.peer = 0, .key = key, .to = room.data(), .bytes = 300'001};
  EXPECT_EQ(finish(get, 100'000), GetStatus::complete);
  EXPECT_EQ(room, memory);
  world->at(0).revoke(key);
  EXPECT_FALSE(world->at(1).is_exposed(0, key, 300'001));
}

TEST_P(RemoteMemory, that_is_revoked_in_the_middle_never_completes) {
  for (int steps = 0; steps < 4; ++steps) {
    const RemoteKey key = world->at(0).expose(memory);
    RemoteGet get{.peer = 0, .key = key, .to = room.data(), .bytes = 300'001};
    for (int i = 0; i < steps && get.done_bytes < 250'000; ++i) world->at(1).get(get, 50'000);
    world->at(0).revoke(key);
    const RemoteKey next = world->at(0).expose(memory);  // takes its place, and is another one
    EXPECT_EQ(finish(get, 50'000), GetStatus::withdrawn) << steps;
    world->at(0).revoke(next);
  }
}

TEST_P(RemoteMemory, is_not_written_after_a_cancelled_read) {
  const RemoteKey key = world->at(0).expose(memory);
  RemoteGet get{.peer = 0, .key = key, .to = room.data(), .bytes = 300'001};
  world->at(1).get(get, 10'000);
  world->at(1).cancel_get(get);
  std::ranges::fill(room, std::byte{0xAA});
  world->settle();
  EXPECT_EQ(room, filled(300'001, 0xAA));
  world->at(0).revoke(key);
}

class NetworkContract : public LinkContract {};

TEST_P(NetworkContract, control_messages_pass_frames_and_keep_their_order) {
  const auto payload = filled(world->at(0).limits().eager_bytes_max, 1);
  while (world->at(0).send(1, FrameOrder::message, {.type = 1, .payload = payload}, this) != Link::Taken::no_room) {}
  for (std::uint64_t i = 0; i < 5; ++i) world->network(0)->post(1, filled(10'000 * static_cast<std::int64_t>(i), i));
  ASSERT_TRUE(world->drive([&] { return world->heard[1].controls.size() == 5; }));
  for (std::uint64_t i = 0; i < 5; ++i)
    EXPECT_EQ(world->heard[1].controls[i], filled(10'000 * static_cast<std::int64_t>(i), i));
}

TEST_P(NetworkContract, a_goodbye_follows_what_was_sent_and_is_no_loss) {
  const auto payload = filled(3000, 1);
  for (int i = 0; i < 5; ++i) send(0, FrameOrder::message, {.type = 1, .payload = payload}, this);
  ASSERT_TRUE(world->drive([&] { return world->at(0).is_flushed(); }));
  world->network(0)->close(steady_clock().now() + 5s);
  ASSERT_TRUE(world->drive([&] { return !world->heard[1].parted_peers.empty(); }));
  EXPECT_EQ(world->heard[1].whole_count(), 5u);
  world->settle();
  EXPECT_THAT(world->heard[1].parted_peers, testing::ElementsAre(0));
  EXPECT_TRUE(world->heard[1].lost_peers.empty());
}

TEST_P(NetworkContract, a_peer_that_dies_is_lost_once_and_its_frames_are_let_go) {
  world->network(1)->attach(0);
  send(0, FrameOrder::message, {.type = 1});
  ASSERT_TRUE(drive_until_heard(1, 1));
  EXPECT_TRUE(world->network(1)->heard_from(0));
  EXPECT_FALSE(world->network(1)->heard_from(0));
  world->kill(0);
  {
    const auto payload = filled(100'000, 1);
    static_cast<void>(world->at(1).send(0, FrameOrder::bulk, {.type = 5, .payload = payload}, this));
    ASSERT_TRUE(world->drive([&] { return !world->heard[1].lost_peers.empty(); }));
  }
  world->settle();
  EXPECT_THAT(world->heard[1].lost_peers, testing::ElementsAre(0));
  EXPECT_TRUE(world->heard[1].parted_peers.empty());
}

std::vector<LinkKind> kinds_with(bool LinkKind::*trait) {
  std::vector<LinkKind> kinds;
  std::ranges::copy_if(all_link_kinds(), std::back_inserter(kinds), [=](const LinkKind& kind) { return kind.*trait; });
  return kinds;
}

const auto kind_name = [](const auto& kind) { return std::string(kind.param.name); };
INSTANTIATE_TEST_SUITE_P(links, LinkContract, testing::ValuesIn(all_link_kinds()), kind_name);
INSTANTIATE_TEST_SUITE_P(links, RemoteMemory, testing::ValuesIn(kinds_with(&LinkKind::reads_memory)), kind_name);
INSTANTIATE_TEST_SUITE_P(links, NetworkContract, testing::ValuesIn(kinds_with(&LinkKind::is_network)), kind_name);

}  // namespace
}  // namespace tutti::link
