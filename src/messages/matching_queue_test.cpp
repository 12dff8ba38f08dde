// matching_queue_test.cpp: matching, wrong sizes, forgetting, and a random walk beside a naive model.
// SPDX-License-Identifier: Apache-2.0
#include "messages/matching_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <list>

#include "base/random.hpp"

namespace tutti::messages {
namespace {

using Fit = MatchingQueue::Fit;
using testing::HasSubstr;

struct Key {
  std::uint64_t group = 1;
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  std::uint32_t tag = 0;
  std::uint32_t phase = 0;
  std::int64_t bytes = 8;
};

Envelope collective(const Key& key) {
  Envelope envelope{
      .group = key.group, .epoch = key.epoch, .tag = key.tag, .phase = key.phase, .channel = collective_channel};
  envelope.signature.sequence = key.sequence;
  envelope.bytes = key.bytes;
  return envelope;
}

Envelope point_to_point(const Key& key) {
  Envelope envelope = collective(key);
  envelope.channel = point_to_point_channel;
  return envelope;
}

Transfer receive_of(int peer, const Envelope& envelope) {
  Transfer receive;
  receive.peer = peer;
  receive.envelope = envelope;
  return receive;
}

TEST(MatchingQueue, a_message_finds_the_receive_posted_before_it) {
  MatchingQueue box(0);
  Transfer receive = receive_of(3, collective({.sequence = 7, .tag = 2}));
  EXPECT_EQ(box.post(receive).fit, Fit::none);
  EXPECT_EQ(receive.state, Transfer::State::pending);
  const MatchingQueue::Match match = box.match(3, collective({.sequence = 7, .tag = 2}));
  EXPECT_EQ(match.fit, Fit::taken);
  EXPECT_EQ(match.receive, &receive);
  EXPECT_EQ(box.posted_count(), 0u);
}

TEST(MatchingQueue, a_receive_finds_the_message_that_came_before_it) {
  MatchingQueue box(0);
  EXPECT_EQ(box.match(3, point_to_point({.tag = 2})).fit, Fit::none);
  UnexpectedMessage& kept = box.keep(3, point_to_point({.tag = 2}));
  Transfer receive = receive_of(any_peer, point_to_point({.tag = 2}));
  const MatchingQueue::Found found = box.post(receive);
  EXPECT_EQ(found.fit, Fit::taken);
  EXPECT_EQ(found.message, &kept);
  EXPECT_EQ(receive.peer, 3);
  EXPECT_EQ(box.unexpected_count(), 0u);
  box.recycle(kept);
}

TEST(MatchingQueue, tells_which_messages_of_a_group_nobody_has_asked_for) {
  MatchingQueue box(0);
  (void)box.keep(3, point_to_point({.tag = 2}));
  (void)box.keep(1, point_to_point({.tag = 9}));
  (void)box.keep(1, point_to_point({.group = 2, .tag = 5}));
  (void)box.keep(1, collective({.tag = 6}));
  const auto all = box.unreceived(1, 0);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(std::pair(all[0].peer, all[0].tag), std::pair(3, 2u));
  EXPECT_EQ(std::pair(all[1].peer, all[1].tag), std::pair(1, 9u));
}

TEST(MatchingQueue, every_part_of_a_collectives_key_tells_messages_apart) {
  const Key key{.group = 5, .epoch = 1, .sequence = 9, .tag = 4, .phase = 2};
  for (int part = 0; part < 6; ++part) {
    MatchingQueue box(0);
    Transfer receive = receive_of(1, collective(key));
    box.post(receive);
    Key other = key;
    if (part == 0) other.group += 1;
    if (part == 1) other.epoch += 1;
    if (part == 2) other.sequence += 1;
    if (part == 3) other.tag += 1;
    if (part == 4) other.phase += 1;
    EXPECT_EQ(box.match(part == 5 ? 2 : 1, collective(other)).fit, Fit::none) << "part " << part;
    EXPECT_EQ(box.match(1, point_to_point(key)).fit, Fit::none) << "lanes are apart";
    EXPECT_EQ(box.match(1, collective(key)).fit, Fit::taken);
  }
}

TEST(MatchingQueue, a_receive_takes_messages_that_are_shorter_than_its_room) {
  MatchingQueue box(4);
  Transfer roomy = receive_of(1, point_to_point({.tag = 6, .bytes = 100}));
  box.post(roomy);
  EXPECT_EQ(box.match(1, point_to_point({.tag = 6, .bytes = 99})).fit, Fit::taken);
  EXPECT_EQ(roomy.envelope.bytes, 99);
}

TEST(MatchingQueue, a_message_that_its_receive_cannot_take_fails_it) {
  MatchingQueue box(4);
  Transfer small = receive_of(1, point_to_point({.tag = 6, .bytes = 100}));
  box.post(small);
  EXPECT_EQ(box.match(1, point_to_point({.tag = 6, .bytes = 101})).fit, Fit::refused);
  EXPECT_EQ(small.state, Transfer::State::failed);
  EXPECT_EQ(small.refusal, Transfer::Refusal::too_long);
  Transfer floats = receive_of(1, point_to_point({.tag = 6, .bytes = 100}));
  floats.envelope.signature.dtype = DType::float32;
  box.post(floats);
  EXPECT_EQ(box.match(1, point_to_point({.tag = 6, .bytes = 100})).fit, Fit::refused);
  EXPECT_EQ(floats.refusal, Transfer::Refusal::other_dtype);
}

TEST(MatchingQueue, a_message_that_a_probe_has_found_is_out_of_reach_until_it_is_released) {
  MatchingQueue box(4);
  UnexpectedMessage& kept = box.keep(1, point_to_point({.tag = 6, .bytes = 3}));
  Transfer probe = receive_of(any_peer, point_to_point({.tag = every_tag}));
  probe.probes = true;
  const MatchingQueue::Found found = box.look(probe);
  ASSERT_EQ(found.fit, Fit::reserved);
  box.reserve(*found.message, probe);
  EXPECT_EQ(probe.state, Transfer::State::done);
  EXPECT_EQ(probe.peer, 1);
  EXPECT_EQ(probe.envelope.tag, 6u);
  Transfer other = receive_of(1, point_to_point({.tag = 6, .bytes = 3}));
  EXPECT_EQ(box.look(other).message, nullptr);
  EXPECT_EQ(&box.release(probe), &kept);
  box.put_back(kept);
  EXPECT_EQ(box.post(other).message, &kept);
  box.recycle(kept);
}

TEST(MatchingQueue, a_call_s_message_of_another_size_fails_its_receive_and_names_both_sizes) {
  MatchingQueue box(4);
  Transfer receive = receive_of(1, collective({.sequence = 2, .bytes = 100}));
  box.post(receive);
  EXPECT_EQ(box.match(1, collective({.sequence = 2, .bytes = 99})).fit, Fit::refused);
  EXPECT_EQ(receive.state, Transfer::State::failed);
  EXPECT_THAT(receive.error, HasSubstr("rank 4"));
  EXPECT_THAT(receive.error, HasSubstr("rank 1"));
  EXPECT_THAT(receive.error, HasSubstr("99 bytes"));
  EXPECT_THAT(receive.error, HasSubstr("100 bytes"));

  UnexpectedMessage& kept = box.keep(1, collective({.sequence = 3, .bytes = 5}));
  Transfer late = receive_of(1, collective({.sequence = 3, .bytes = 4}));
  EXPECT_EQ(box.post(late).fit, Fit::refused);
  EXPECT_EQ(late.state, Transfer::State::failed);
  EXPECT_THAT(late.error, HasSubstr("same counts"));
  box.recycle(kept);
}

TEST(MatchingQueue, forget_takes_collectives_up_to_the_sequence_and_nothing_else) {
  MatchingQueue box(0);
  for (std::uint64_t sequence = 0; sequence < 10; ++sequence)
    box.keep(1, collective({.group = 1, .sequence = sequence}));
  box.keep(1, collective({.group = 2, .sequence = 0}));
  box.keep(1, point_to_point({.group = 1}));
  const auto recycle_all = [&](UnexpectedMessage* chain) {
    int count = 0;
    while (chain != nullptr) {
      UnexpectedMessage* const next = chain->next;
      box.recycle(*chain);
      chain = next;
      ++count;
    }
    return count;
  };
  EXPECT_EQ(recycle_all(box.forget(1, 4)), 5);
  EXPECT_EQ(box.unexpected_count(), 7u);
  EXPECT_EQ(recycle_all(box.forget(1, every_sequence)), 6)
      << "a group that is gone loses its point-to-point messages too";
  EXPECT_EQ(box.unexpected_count(), 1u);
}

TEST(MatchingQueue, a_peer_that_is_gone_gives_back_the_receives_that_name_it) {
  MatchingQueue box(0);
  Transfer named = receive_of(2, point_to_point({}));
  Transfer other = receive_of(1, point_to_point({}));
  Transfer anyone = receive_of(any_peer, point_to_point({}));
  for (Transfer* receive : {&named, &other, &anyone}) box.post(*receive);
  EXPECT_EQ(box.withdraw_all(2), &named);
  EXPECT_EQ(named.next, nullptr);
  EXPECT_EQ(box.posted_count(), 2u);

  box.keep(2, point_to_point({.tag = 9})).announced = true;
  box.keep(2, point_to_point({.tag = 9}));
  UnexpectedMessage* const gone = box.forget_announced(2);
  ASSERT_NE(gone, nullptr);
  EXPECT_EQ(gone->next, nullptr);
  EXPECT_EQ(box.unexpected_count(), 1u);
}

TEST(MatchingQueue, payload_memory_is_counted_reused_and_given_back) {
  MatchingQueue box(0);
  UnexpectedMessage& first = box.keep(1, point_to_point({.bytes = 1000}));
  EXPECT_NE(box.make_room(first), nullptr);
  EXPECT_EQ(box.held_bytes(), 1000);
  Transfer receive = receive_of(1, point_to_point({.bytes = 1000}));
  box.recycle(*box.post(receive).message);
  EXPECT_EQ(box.held_bytes(), 0);
  EXPECT_EQ(box.pooled_bytes(), 1000);
  UnexpectedMessage& second = box.keep(1, point_to_point({.bytes = 500}));
  EXPECT_EQ(&second, &first);
  box.make_room(second);
  EXPECT_EQ(box.held_bytes(), 1000) << "the room of the pooled entry";

  constexpr std::int64_t mebibyte = 1 << 20;
  for (int i = 0; i < 20; ++i) box.make_room(box.keep(1, collective({.sequence = 1, .bytes = mebibyte})));
  for (UnexpectedMessage* chain = box.forget(1, 1); chain != nullptr;) box.recycle(*std::exchange(chain, chain->next));
  EXPECT_LE(box.pooled_bytes(), 4 * mebibyte) << "a flood does not keep its memory for ever";
}

// The naive model: two lists, searched from the front.
struct Model {
  struct Posted {
    int peer;
    Envelope envelope;
    Transfer* receive;
  };
  struct Unexpected {
    int peer;
    Envelope envelope;
    std::uint64_t id;
  };
  static bool fits(const Posted& posted, int peer, const Envelope& envelope) {
    const Envelope& mine = posted.envelope;
    if (mine.channel != envelope.channel || mine.group != envelope.group || mine.epoch != envelope.epoch) return false;
    if (mine.channel == point_to_point_channel)
      return (mine.tag == envelope.tag || mine.tag == every_tag) && (posted.peer == any_peer || posted.peer == peer);
    if (mine.tag != envelope.tag) return false;
    return posted.peer == peer && mine.signature.sequence == envelope.signature.sequence &&
           mine.phase == envelope.phase;
  }
  std::list<Posted> posted;
  std::list<Unexpected> unexpected;
};

class MatchingQueueWalk : public testing::TestWithParam<int> {
 protected:
  Envelope random_envelope() {
    const Key key{.group = random.below(2),
                  .epoch = 0,
                  .sequence = random.below(3),
                  .tag = static_cast<std::uint32_t>(random.below(3)),
                  .phase = static_cast<std::uint32_t>(random.below(2))};
    return random.below(2) == 0 ? collective(key) : point_to_point(key);
  }

  void message_comes_in() {
    const int peer = static_cast<int>(random.below(3));
    const Envelope envelope = random_envelope();
    const MatchingQueue::Match match = box.match(peer, envelope);
    for (auto it = model.posted.begin(); it != model.posted.end(); ++it) {
      if (!Model::fits(*it, peer, envelope)) continue;
      ASSERT_EQ(match.receive, it->receive);
      ASSERT_EQ(match.receive->peer, peer);
      model.posted.erase(it);
      return;
    }
    ASSERT_EQ(match.fit, Fit::none);
    box.keep(peer, envelope).id = ++last_id;
    model.unexpected.push_back({peer, envelope, last_id});
  }

  void receive_is_posted() {
    Envelope envelope = random_envelope();
    if (envelope.channel == point_to_point_channel && random.below(4) == 0) envelope.tag = every_tag;
    const bool anyone = envelope.channel == point_to_point_channel && random.below(2) == 0;
    Transfer& receive =
        receives.emplace_back(receive_of(anyone ? any_peer : static_cast<int>(random.below(3)), envelope));
    const Model::Posted posted{receive.peer, envelope, &receive};
    const MatchingQueue::Found found = box.post(receive);
    for (auto it = model.unexpected.begin(); it != model.unexpected.end(); ++it) {
      if (!Model::fits(posted, it->peer, it->envelope)) continue;
      ASSERT_NE(found.message, nullptr);
      ASSERT_EQ(found.message->id, it->id);
      ASSERT_EQ(receive.peer, it->peer);
      box.recycle(*found.message);
      model.unexpected.erase(it);
      return;
    }
    ASSERT_EQ(found.fit, Fit::none);
    model.posted.push_back(posted);
  }

  void receive_is_withdrawn() {
    if (model.posted.empty()) return;
    auto it = std::next(model.posted.begin(), static_cast<long>(random.below(model.posted.size())));
    box.withdraw(*it->receive);
    model.posted.erase(it);
  }

  void call_is_forgotten() {
    const std::uint64_t group = random.below(2), up_to = random.below(3);
    std::size_t count = 0;
    for (UnexpectedMessage* chain = box.forget(group, up_to); chain != nullptr; ++count) {
      box.recycle(*std::exchange(chain, chain->next));
    }
    ASSERT_EQ(count, std::erase_if(model.unexpected, [&](const Model::Unexpected& entry) {
                return entry.envelope.channel == collective_channel && entry.envelope.group == group &&
                       entry.envelope.signature.sequence <= up_to;
              }));
  }

  Random random{static_cast<std::uint64_t>(GetParam())};
  MatchingQueue box{0};
  Model model;
  std::deque<Transfer> receives;
  std::uint64_t last_id = 0;
};

TEST_P(MatchingQueueWalk, agrees_with_two_lists_searched_from_the_front) {
  // Odd seeds favour messages, even ones receives, so that both sides grow past the first number of bins.
  const std::uint64_t message_share = GetParam() % 2 == 0 ? 45 : 55;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t draw = random.below(1000);
    if (draw < 2) {
      call_is_forgotten();
    } else if (draw < 12) {
      receive_is_withdrawn();
    } else if (random.below(100) < message_share) {
      message_comes_in();
    } else {
      receive_is_posted();
    }
    if (HasFatalFailure()) FAIL() << "at step " << step;
    ASSERT_EQ(box.posted_count(), model.posted.size());
    ASSERT_EQ(box.unexpected_count(), model.unexpected.size());
  }
}

INSTANTIATE_TEST_SUITE_P(seeds, MatchingQueueWalk, testing::Range(1, 7));

}  // namespace
}  // namespace tutti::messages
