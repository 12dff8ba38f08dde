// frames_test.cpp: which frames the protocol sends, and when: heads in brief, credits, and messages that are cancelled in the link's queue.
// SPDX-License-Identifier: Apache-2.0
#include "messages/frames.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "messages/messages.hpp"
#include "tests/support/messages_world.hpp"

namespace tutti::messages {
namespace {

using testing::ElementsAre;

// A network that keeps what it is given until the test says that it is sent.
class HeldNetwork final : public Network {
 public:
  struct Held {
    FrameType type;
    void* owner;
    std::int64_t payload_bytes;
    bool has_begun = false;
  };

  [[nodiscard]] std::string_view name() const override { return "held"; }
  [[nodiscard]] Limits limits() const override {
    return {.eager_bytes_max = 100,
            .credit_bytes = 4 * credit_cost(100),
            .fragment_bytes_max = 60,
            .bulk_has_own_channel = true};
  }
  void listen(LinkListener* listener) override { listener_ = listener; }
  Taken send(int, FrameOrder, const Frame& frame, void* owner) override {
    if (held.size() == room) return Taken::no_room;
    const auto type = static_cast<FrameType>(frame.type);
    types.push_back(type);
    held.push_back({type, owner, static_cast<std::int64_t>(frame.payload.size())});
    return Taken::queued;
  }
  std::size_t withdraw(int, const void* owner) override {
    std::size_t vanished = 0;
    for (auto frame = held.begin(); frame != held.end();) {
      const bool vanishes = frame->owner == owner && !frame->has_begun;
      if (frame->owner == owner) frame->owner = nullptr;
      vanished += vanishes;
      frame = vanishes ? held.erase(frame) : frame + 1;
    }
    return vanished;
  }
  bool poll() override { return false; }
  void abandon() override {}
  void post(int, std::span<const std::byte>) override {}
  void attach(int) override {}
  bool heard_from(int) override { return false; }
  bool wait(TimePoint, Transport::Events) override { return false; }
  void wake() override {}
  void close(TimePoint) override {}

  // The oldest frame has left.
  void send_one() {
    const Held frame = held.front();
    held.pop_front();
    if (frame.owner != nullptr) listener_->sent(frame.owner, frame.payload_bytes);
  }
  void hear(FrameType type, const Numbers& numbers) {
    listener_->frame(1, {.type = static_cast<std::uint8_t>(type), .head = bytes_of(numbers)});
  }
  std::vector<FrameType> take_types() { return std::exchange(types, {}); }

  std::deque<Held> held;
  std::vector<FrameType> types;  // of all frames that were taken
  std::size_t room = 100;

 private:
  LinkListener* listener_ = nullptr;
};

class FramesOfMessages : public testing::Test {
 protected:
  void SetUp() override { messages.listen(&listener); }
  Parcel& send(std::int64_t bytes = 8) {
    messages.send(*parcels.emplace_back(Parcel::to(1, 3, bytes)).transfer);
    return parcels.back();
  }

  HeldNetwork* network = new HeldNetwork;
  Messages messages{{.rank = 0, .size = 2, .clock = steady_clock(), .network = std::unique_ptr<Network>(network)}};
  Recorder listener;
  std::deque<Parcel> parcels;
};

TEST_F(FramesOfMessages, a_head_is_brief_once_a_full_one_like_it_is_on_its_way_for_good) {
  send();
  send();
  EXPECT_THAT(network->take_types(), ElementsAre(FrameType::full, FrameType::full));
  network->send_one();
  send();
  EXPECT_THAT(network->take_types(), ElementsAre(FrameType::full)) << "one that may still be withdrawn stands between";
  network->send_one();
  network->send_one();
  send();
  EXPECT_THAT(network->take_types(), ElementsAre(FrameType::brief));
}

TEST_F(FramesOfMessages, no_brief_head_refers_to_one_that_never_left) {
  Parcel& first = send();
  messages.cancel(*first.transfer);
  EXPECT_TRUE(network->held.empty());
  send();
  EXPECT_THAT(network->take_types(), ElementsAre(FrameType::full, FrameType::full));
}

TEST_F(FramesOfMessages, no_brief_head_refers_past_one_that_was_cancelled_when_it_had_begun) {
  send();
  network->send_one();
  Parcel other = Parcel::to(1, 3, 8);
  other.transfer->envelope.group = 99;  // a full head
  messages.send(*other.transfer);
  network->held.front().has_begun = true;
  messages.cancel(*other.transfer);
  network->send_one();
  network->take_types();
  send();
  EXPECT_THAT(network->take_types(), ElementsAre(FrameType::full)) << "the receiver knows the cancelled one's head";
}

TEST_F(FramesOfMessages, credit_is_spent_comes_back_and_is_not_spent_by_what_vanishes) {
  for (int i = 0; i < 4; ++i) send(100);
  EXPECT_THAT(network->take_types(), testing::Each(FrameType::full));
  send(100);
  EXPECT_THAT(network->take_types(), ElementsAre(FrameType::rts));
  messages.cancel(*parcels[3].transfer);
  send(100);
  EXPECT_THAT(network->take_types(), ElementsAre(FrameType::full));
  network->hear(FrameType::credit, {.first = static_cast<std::uint64_t>(credit_cost(100))});
  send(100);
  EXPECT_THAT(network->take_types(), ElementsAre(FrameType::full));
  EXPECT_THROW(network->hear(FrameType::credit, {.first = 1 << 20}), MalformedMessage);
}

TEST_F(FramesOfMessages, a_large_message_goes_out_in_fragments_when_it_is_asked_for) {
  Parcel& large = send(150);
  network->hear(FrameType::cts, {.first = std::uint64_t{1} << 32, .second = 7});
  messages.poll();
  EXPECT_THAT(network->take_types(),
              ElementsAre(FrameType::rts, FrameType::fragment, FrameType::fragment, FrameType::fragment));
  while (!network->held.empty()) {
    EXPECT_TRUE(large.is_pending());
    network->send_one();
  }
  EXPECT_TRUE(large.is_done());
}

TEST_F(FramesOfMessages, a_large_message_is_cancelled_in_words_only_if_the_receiver_may_know_of_it) {
  messages.cancel(*send(150).transfer);
  EXPECT_THAT(network->take_types(), ElementsAre(FrameType::rts));
  EXPECT_TRUE(network->held.empty());
  Parcel& announced = send(150);
  network->send_one();
  messages.cancel(*announced.transfer);
  EXPECT_THAT(network->take_types(), ElementsAre(FrameType::rts, FrameType::cancel));
}

TEST_F(FramesOfMessages, a_receiver_that_does_not_want_the_rest_ends_the_send_and_frees_its_memory) {
  Parcel& large = send(150);
  network->send_one();
  network->hear(FrameType::cts, {.first = std::uint64_t{1} << 32, .second = 7});
  messages.poll();
  network->held.front().has_begun = true;
  network->hear(FrameType::fin, {.first = std::uint64_t{1} << 32});
  EXPECT_TRUE(large.is_done());
  EXPECT_TRUE(std::ranges::none_of(network->held, [](const auto& frame) { return frame.owner != nullptr; }));
}

TEST_F(FramesOfMessages, what_finds_no_room_waits_in_order) {
  network->room = 1;
  for (std::uint32_t i = 0; i < 3; ++i) send();
  EXPECT_FALSE(messages.is_flushed());
  EXPECT_FALSE(messages.poll());
  messages.cancel(*parcels[1].transfer);
  network->send_one();
  EXPECT_TRUE(messages.poll());
  ASSERT_EQ(network->held.size(), 1u);
  EXPECT_EQ(network->held.front().owner, parcels[2].transfer.get());
  EXPECT_TRUE(messages.is_flushed());
}

}  // namespace
}  // namespace tutti::messages
