// ring.hpp: a ring of records between two ranks of one host: one writes, the other reads, neither waits.
// SPDX-License-Identifier: Apache-2.0
//
// The ring lies in the writer's arena; the reader tells how far it has read in its own. A record is a head (one word) and
// a body, contiguous, beginning on a line; positions count lines and never wrap. What makes it fast: the reader
// looks at the very word in which the next record's head will appear, so that a small message crosses in one line.
//
//  1. A head that is not zero stands for a whole record: it is stored last, with release order.
//  2. The word where the next head will appear is zeroed before a head is stored; one line is therefore always free. A few
//     lines are zeroed ahead of time, so that a message like the one before touches no line but its own before it is there.
//  3. The reader believes nothing: a head that does not fit its place or its ring is a MalformedMessage, and a user that
//     looks into a body copies what it needs once and checks the copy.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "shm/atomics.hpp"

namespace tutti::link {

// Two cache lines, because processors fetch them in pairs: looking for the next record must not pull at the one after it.
inline constexpr std::size_t line_bytes = 128;

enum class RecordKind : std::uint8_t {
  none,   // nothing here yet
  pad,    // the next record stands at the ring's beginning
  frame,  // a whole frame: head, payload
  first,  // the beginning of one: payload bytes of the frame (a word), head, some payload
  more,   // the next part of its payload
};

// The word that a record begins with. The position tells a record from the remains of others.
struct RecordHead {
  RecordKind kind = RecordKind::none;
  bool in_cell = false;         // the body ends with the name of a cell, which holds the payload
  std::uint8_t type = 0;        // of the frame, below 16
  std::uint8_t head_bytes = 0;  // of the frame
  std::uint32_t bytes = 0;      // of the body
  static constexpr std::size_t size_bytes = 8;

  [[nodiscard]] static constexpr std::uint64_t pack(RecordHead head, std::uint64_t position) {
    return std::uint64_t{head.bytes} << 32 | std::uint64_t{head.head_bytes} << 24 | (position & 0xffff) << 8 |
           std::uint64_t{head.in_cell} << 7 | std::uint64_t{head.type} << 3 | static_cast<std::uint64_t>(head.kind);
  }
};

// What a reader found: the head's word as it was read, and the body in the writer's memory, which may change under a reader's eyes.
struct Record {
  std::uint64_t word = 0;
  const std::byte* body = nullptr;

  [[nodiscard]] RecordKind kind() const { return static_cast<RecordKind>(word & 7); }
  [[nodiscard]] std::uint8_t type() const { return static_cast<std::uint8_t>(word >> 3 & 15); }
  [[nodiscard]] bool in_cell() const { return (word >> 7 & 1) != 0; }
  [[nodiscard]] std::size_t head_bytes() const { return word >> 24 & 0xff; }
  [[nodiscard]] std::uint32_t bytes() const { return static_cast<std::uint32_t>(word >> 32); }
};

constexpr std::uint64_t lines_of(std::size_t body_bytes) {
  return (body_bytes + RecordHead::size_bytes + line_bytes - 1) / line_bytes;
}

class RingWriter {
 public:
  RingWriter() = default;
  // `memory` holds `lines` lines, a power of two; `read_lines` is where the reader tells its position.
  RingWriter(std::byte* memory, std::uint64_t lines, const std::atomic<std::uint64_t>& read_lines)
      : memory_(memory), lines_(lines), read_lines_(&read_lines) {
    head_at(0).store(0, std::memory_order_release);
  }
  [[nodiscard]] bool exists() const { return memory_ != nullptr; }
  // Whether records of so many lines in all find room, however they are cut at the ring's end; none has more than
  // `record_lines`.
  [[nodiscard]] bool has_room(std::uint64_t lines, std::uint64_t record_lines) {
    if (lines + record_lines < free_lines_seen()) return true;
    look_for_room();
    return lines + record_lines < free_lines_seen();
  }
  // Where the body of the next record goes; nullptr if there is no room. Each begin() but the last unanswered one is
  // followed by a publish().
  [[nodiscard]] std::byte* begin(std::size_t body_bytes) {
    const std::uint64_t lines = lines_of(body_bytes);
    const std::uint64_t left = lines_ - index_of(written_);  // to the ring's end
    const std::uint64_t skipped = lines > left ? left : 0;
    if (skipped + lines >= free_lines_seen()) {
      look_for_room();
      if (skipped + lines >= free_lines_seen()) return nullptr;
    }
    if (skipped > 0) publish({.kind = RecordKind::pad}, skipped);
    return memory_ + index_of(written_) * line_bytes + RecordHead::size_bytes;
  }
  void publish(RecordHead head) { publish(head, lines_of(head.bytes)); }
  // When there is time: after the last of some records. The next one will be as long, most likely: the head after it is zeroed, too,
  // and its first lines are fetched, but for that which the reader looks at.
  void zero_ahead() {
    const std::uint64_t expected = last_lines_ <= expected_lines_max ? last_lines_ : 0;
    for (std::uint64_t i = 0; i < std::min(expected, fetched_ahead); ++i) {
      std::byte* const line = memory_ + index_of(written_ + i) * line_bytes;
      if (i > 0) shm::expect_write(line);
      shm::expect_write(line + line_bytes / 2);
    }
    const std::uint64_t end = std::min(written_ + std::max(zeroed_ahead, expected + 1), read_seen_ + lines_);
    for (; zeroed_ < end; ++zeroed_) {
      head_at(zeroed_).store(0, std::memory_order_relaxed);
      shm::expect_write(memory_ + index_of(zeroed_ + fetched_ahead) * line_bytes);
    }
  }
  [[nodiscard]] std::uint64_t written_lines() const { return written_; }

 private:
  static constexpr std::uint64_t zeroed_ahead = 4, fetched_ahead = 8, expected_lines_max = 64;

  [[nodiscard]] std::uint64_t index_of(std::uint64_t position) const { return position & (lines_ - 1); }
  [[nodiscard]] std::atomic_ref<std::uint64_t> head_at(std::uint64_t position) const {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory_ + index_of(position) * line_bytes));
  }
  void publish(RecordHead head, std::uint64_t lines) {
    const std::uint64_t next = written_ + lines;
    if (next >= zeroed_) {
      head_at(next).store(0, std::memory_order_relaxed);
      zeroed_ = next + 1;
    }
    head_at(written_).store(RecordHead::pack(head, written_), std::memory_order_release);
    written_ = next;
    last_lines_ = lines;
  }
  [[nodiscard]] std::uint64_t free_lines_seen() const { return lines_ - (written_ - read_seen_); }
  // A reader that claims nonsense harms nobody but itself, as long as the writer stays inside its ring.
  void look_for_room() {
    const std::uint64_t read = read_lines_->load(std::memory_order_acquire);
    if (read > read_seen_ && read <= written_) read_seen_ = read;
  }

  std::byte* memory_ = nullptr;
  std::uint64_t lines_ = 0;
  const std::atomic<std::uint64_t>* read_lines_ = nullptr;
  std::uint64_t written_ = 0;
  std::uint64_t last_lines_ = 0;  // of the last record
  std::uint64_t zeroed_ = 1;      // the heads from written_ up to here are
  std::uint64_t read_seen_ = 0;
};

class RingReader {
 public:
  RingReader() = default;
  RingReader(const std::byte* memory, std::uint64_t lines) : memory_(memory), lines_(lines) {}
  [[nodiscard]] bool exists() const { return memory_ != nullptr; }
  // One load of a word that is in the cache unless it changed.
  [[nodiscard]] bool has_news() const { return next_word() != 0; }
  // The next record, which stays readable until release(); none if there is none. Throws MalformedMessage.
  [[nodiscard]] Record next() {
    const std::uint64_t word = next_word();
    if (word == 0) return {};
    const Record record{.word = word, .body = memory_ + index_of(read_) * line_bytes + RecordHead::size_bytes};
    const std::uint64_t left = lines_ - index_of(read_);
    const bool in_place = (word >> 8 & 0xffff) == (read_ & 0xffff);
    if (!in_place || record.head_bytes() > record.bytes() || record.kind() == RecordKind::none ||
        record.kind() > RecordKind::more || lines_of(record.bytes()) > left) [[unlikely]]
      reject(record, left);
    if (record.kind() == RecordKind::pad) [[unlikely]]
      return after_pad(left);
    return record;
  }
  void release(const Record& record) { read_ += lines_of(record.bytes()); }
  [[nodiscard]] std::uint64_t read_lines() const { return read_; }
  [[nodiscard]] std::uint64_t lines() const { return lines_; }

 private:
  [[nodiscard]] std::uint64_t index_of(std::uint64_t position) const { return position & (lines_ - 1); }
  [[nodiscard]] std::uint64_t next_word() const {
    auto* const place = const_cast<std::byte*>(memory_ + index_of(read_) * line_bytes);
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(place)).load(std::memory_order_acquire);
  }
  [[noreturn]] static void reject(const Record& record, std::uint64_t left);
  Record after_pad(std::uint64_t left);

  const std::byte* memory_ = nullptr;
  std::uint64_t lines_ = 0;
  std::uint64_t read_ = 0;
};

}  // namespace tutti::link
