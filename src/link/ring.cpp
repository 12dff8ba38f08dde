// ring.cpp: what a reader of a ring makes sure of.
// SPDX-License-Identifier: Apache-2.0
#include "link/ring.hpp"

#include <fmt/format.h>

namespace tutti::link {

Record RingReader::checked(std::uint64_t head) {
  for (;;) {
    const auto kind = static_cast<RecordKind>(head & 7);
    const auto bytes = static_cast<std::uint32_t>(head >> 32);
    const auto head_bytes = static_cast<std::uint8_t>(head >> 24);
    const std::uint64_t left = lines_ - read_ % lines_;
    const bool in_place = (head >> 8 & 0xffff) == (read_ & 0xffff);
    if (!in_place || head_bytes > bytes || kind == RecordKind::none || kind > RecordKind::more ||
        lines_of(bytes) > left) {
      throw MalformedMessage(
          fmt::format("its ring in shared memory holds a record that cannot be one (kind {}, {} bytes, {} lines from "
                      "the ring's end); did something overwrite the memory?",
                      static_cast<int>(kind), bytes, left));
    }
    if (kind != RecordKind::pad) {
      return {.head = {.kind = kind,
                       .type = static_cast<std::uint8_t>(head >> 3 & 31),
                       .head_bytes = head_bytes,
                       .bytes = bytes},
              .body = memory_ + read_ % lines_ * line_bytes + RecordHead::size_bytes};
    }
    // A pad at the ring's beginning would skip all of it, for ever.
    if (left == lines_) throw MalformedMessage("its ring in shared memory skips all of itself");
    read_ += left;
    head = word();
    if (head == 0) return {};
  }
}

}  // namespace tutti::link
