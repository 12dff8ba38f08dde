// ring_test.cpp: a ring keeps order and content around its end, refuses what has no room, and believes nothing.
// SPDX-License-Identifier: Apache-2.0
#include "link/ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "base/random.hpp"

namespace tutti::link {
namespace {

constexpr std::uint64_t line_count = 32;

struct Ring {
  alignas(line_bytes) std::array<std::byte, line_count * line_bytes> memory{};
  std::atomic<std::uint64_t> read_lines{0};
  RingWriter writer{memory.data(), line_count, read_lines};
  RingReader reader{memory.data(), line_count};

  bool put(std::size_t bytes, std::uint8_t value) {
    std::byte* const body = writer.begin(bytes);
    if (body == nullptr) return false;
    std::memset(body, value, bytes);
    writer.publish({.kind = RecordKind::frame, .bytes = static_cast<std::uint32_t>(bytes)});
    return true;
  }
  // Whether the next record is this one.
  bool take(std::size_t bytes, std::uint8_t value) {
    const Record record = reader.next();
    if (record.kind() != RecordKind::frame || record.bytes() != bytes) return false;
    for (std::size_t i = 0; i < bytes; ++i) {
      if (record.body[i] != static_cast<std::byte>(value)) return false;
    }
    reader.release(record);
    return true;
  }
  void tell() { read_lines.store(reader.read_lines(), std::memory_order_release); }
};

TEST(FrameRing, records_of_all_sizes_come_out_as_they_went_in_around_the_end) {
  Ring ring;
  Random random(3);
  std::deque<std::pair<std::size_t, std::uint8_t>> inside;
  std::uint8_t value = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (random.below(2) == 0) {
      const auto bytes = static_cast<std::size_t>(random.below(random.below(4) == 0 ? 1500 : 100));
      // 0xff… as payload would be a plausible head, if anybody looked there.
      value = random.below(3) == 0 ? std::uint8_t{0xff} : static_cast<std::uint8_t>(value + 1);
      if (ring.put(bytes, value)) inside.emplace_back(bytes, value);
      if (random.below(2) == 0) ring.writer.zero_ahead();
    } else if (inside.empty()) {
      ASSERT_FALSE(ring.reader.has_news());
      ASSERT_EQ(ring.reader.next().kind(), RecordKind::none);
    } else {
      ASSERT_TRUE(ring.take(inside.front().first, inside.front().second)) << step;
      inside.pop_front();
    }
    if (random.below(5) == 0) ring.tell();
  }
  EXPECT_GT(ring.reader.read_lines(), 50 * line_count);
}

TEST(FrameRing, a_full_ring_takes_nothing_until_its_reader_tells) {
  Ring ring;
  int count = 0;
  while (ring.put(8, static_cast<std::uint8_t>(count))) ++count;
  EXPECT_EQ(count, static_cast<int>(line_count) - 1) << "one line is always free";
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(ring.take(8, static_cast<std::uint8_t>(i)));
  EXPECT_FALSE(ring.put(8, 99));
  ring.tell();
  EXPECT_FALSE(ring.writer.has_room(6, 1));
  EXPECT_TRUE(ring.writer.has_room(3, 1));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(ring.put(8, static_cast<std::uint8_t>(count + i)));
  EXPECT_FALSE(ring.put(8, 99));
  for (int i = 5; i < count + 5; ++i) ASSERT_TRUE(ring.take(8, static_cast<std::uint8_t>(i)));
  EXPECT_FALSE(ring.reader.has_news());
}

TEST(FrameRing, a_reader_that_claims_more_than_was_written_gets_no_more_room) {
  Ring ring;
  while (ring.put(8, 1)) {}
  for (const std::uint64_t claim : {line_count, ~std::uint64_t{0}, std::uint64_t{1} << 40}) {
    ring.read_lines = claim;
    EXPECT_FALSE(ring.put(8, 1)) << claim;
  }
}

TEST(FrameRing, a_head_that_cannot_be_one_is_refused) {
  const std::uint64_t good = RecordHead::pack({.kind = RecordKind::frame, .bytes = 8}, 0);
  const std::uint64_t bad_heads[] = {
      good + 100,      // no such kind
      good | 1 << 8,   // of another place
      good | 9 << 24,  // the frame's head is longer than the record
      RecordHead::pack({.kind = RecordKind::frame, .bytes = line_count * line_bytes}, 0),
      RecordHead::pack({.kind = RecordKind::frame, .bytes = ~std::uint32_t{0}}, 0),
      RecordHead::pack({.kind = RecordKind::pad, .bytes = 0}, 0),  // would skip the whole ring
      ~std::uint64_t{0},
  };
  for (const std::uint64_t head : bad_heads) {
    Ring ring;
    ASSERT_TRUE(ring.put(8, 1));
    std::memcpy(ring.memory.data(), &head, sizeof head);
    EXPECT_THROW(static_cast<void>(ring.reader.next()), MalformedMessage) << std::hex << head;
  }
}

TEST(FrameRing, a_writer_and_a_reader_in_two_threads_lose_nothing) {
  Ring ring;
  constexpr int count = 30'000;
  const auto size_of = [](int i) { return static_cast<std::size_t>(i * 37 % 411); };
  std::thread writer([&] {
    for (int i = 0; i < count;) {
      if (ring.put(size_of(i), static_cast<std::uint8_t>(i))) {
        if (++i % 3 == 0) ring.writer.zero_ahead();
      } else {
        std::this_thread::yield();
      }
    }
  });
  int wrong = 0;
  for (int i = 0; i < count;) {
    if (!ring.reader.has_news()) {
      std::this_thread::yield();
      continue;
    }
    const Record record = ring.reader.next();
    if (record.kind() == RecordKind::none) continue;  // a pad, and nothing behind it yet
    const auto value = static_cast<std::byte>(i);
    wrong += record.bytes() != size_of(i);
    for (std::size_t at = 0; at < record.bytes(); ++at) wrong += record.body[at] != value;
    ring.reader.release(record);
    ring.tell();
    ++i;
  }
  writer.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tutti::link
