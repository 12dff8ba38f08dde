// message_test.cpp: every control message survives the trip, and nothing else is believed.
// SPDX-License-Identifier: Apache-2.0
#include "control/message.hpp"

#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "base/random.hpp"

namespace tutti::control {
namespace {

const Cause cause{.kind = Cause::Kind::mismatch, .culprits = {1, 4}, .sequence = 412, .text = "ranks 1 and 4 disagree"};
const CreationName name{0x1234567890abcdefu, 3};
const std::vector<std::byte> some_bytes = {std::byte{1}, std::byte{0}, std::byte{255}};

std::vector<Message> one_of_each() {
  std::vector<Message> all = {Beat{7}, Link{}, Seen{}};
  for (const FloodBody& body :
       std::vector<FloodBody>{Suspect{2, false, "silent", true}, Alive{17}, Lost{3, cause}, Proposal{7, 1, cause},
                              Broken{7, 1, cause}, Goodbye{{{7, 1, 41, 99, 3}, {9, 0, 0, 0, 0, false}}, true, true},
                              Departed{3}, Refused{7, 1, 41, "no"}, StoreMoved{3}}) {
    all.emplace_back(Flooded{4, 99, body});
  }
  for (const RoutedBody& body : std::vector<RoutedBody>{
           Probe{1, some_bytes}, ProbeAnswer{2, some_bytes}, Join{name, 3, {0, 4, 2}}, Missing{name, cause},
           Made{name, 77, some_bytes}, Taken{name}, GaveUp{name, cause}, CalledOff{name, cause},
           StoreAsked{store::Request::Kind::compare_set, 9, 7, "key", true, "old", "new", -3},
           StoreAnswered{true, store::Reply::Kind::number, 9, "new", -1}, StoreOffered{12}, StoreFetched{11},
           StorePart{11, some_bytes}}) {
    all.emplace_back(Routed{0, 4, 12, body});
  }
  return all;
}

TEST(ControlMessage, of_every_kind_survives_the_trip) {
  const std::vector<Message> all = one_of_each();
  EXPECT_EQ(all.size(), 3 + std::variant_size_v<FloodBody> + std::variant_size_v<RoutedBody>);
  for (const Message& message : all) EXPECT_EQ(decode(encode(message), 5), message);
}

TEST(ControlMessage, cut_short_or_too_long_is_refused) {
  for (const Message& message : one_of_each()) {
    std::vector<std::byte> bytes = encode(message);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_THROW(decode(std::span(bytes).first(length), 5), MalformedMessage);
    }
    bytes.push_back(std::byte{0});
    EXPECT_THROW(decode(bytes, 5), MalformedMessage);
  }
}

TEST(ControlMessage, that_names_a_rank_outside_the_world_is_refused) {
  EXPECT_THROW(decode(encode(Flooded{4, 1, Goodbye{}}), 4), MalformedMessage);
  EXPECT_THROW(decode(encode(Flooded{0, 1, Suspect{4, true, ""}}), 4), MalformedMessage);
  EXPECT_THROW(decode(encode(Routed{0, 1, 3, Join{name, 5, {0}}}), 4), MalformedMessage);
}

TEST(ControlMessage, with_a_long_text_is_shortened_so_that_it_fits) {
  Cause wordy = cause;
  wordy.text.assign(100'000, 'x');
  wordy.culprits.assign(5000, 1);
  const std::vector<std::byte> bytes = encode(Flooded{0, 1, Lost{1, wordy}});
  EXPECT_LE(bytes.size(), 64u * 1024);
  const Message decoded = decode(bytes, 2);
  EXPECT_EQ(std::get<Lost>(std::get<Flooded>(decoded).body).cause.text.size(), text_bytes_max);
}

TEST(ControlMessage, with_changed_bytes_is_read_or_refused_and_never_more) {
  Random random(1);
  for (const Message& message : one_of_each()) {
    const std::vector<std::byte> original = encode(message);
    for (int round = 0; round < 500; ++round) {
      std::vector<std::byte> bytes = original;
      for (std::uint64_t i = 0; i <= random.below(3); ++i)
        bytes[random.below(bytes.size())] = std::byte(random.below(256));
      try {
        EXPECT_EQ(encode(decode(bytes, 5)), bytes);
      } catch (const MalformedMessage&) {}
    }
  }
}

}  // namespace
}  // namespace tutti::control
