// ring.cpp: what a reader of a ring makes sure of.
// SPDX-License-Identifier: Apache-2.0
#include "link/ring.hpp"

#include <fmt/format.h>

namespace tutti::link {

Record RingReader::checked(std::uint64_t word) {
  for (;;) {
    const Record record{.word = word, .body = memory_ + read_ % lines_ * line_bytes + RecordHead::size_bytes};
    const RecordKind kind = record.kind();
    const std::uint64_t left = lines_ - read_ % lines_;
    const bool in_place = (word >> 8 & 0xffff) == (read_ & 0xffff);
    if (!in_place || record.head_bytes() > record.bytes() || kind == RecordKind::none || kind > RecordKind::more ||
        lines_of(record.bytes()) > left) {
      throw MalformedMessage(
          fmt::format("its ring in shared memory holds a record that cannot be one (kind {}, {} bytes, {} lines from "
                      "the ring's end); did something overwrite the memory?",
                      static_cast<int>(kind), record.bytes(), left));
    }
    if (kind != RecordKind::pad) return record;
    // A pad at the ring's beginning would skip all of it, for ever.
    if (left == lines_) throw MalformedMessage("its ring in shared memory skips all of itself");
    read_ += left;
    word = next_word();
    if (word == 0) return {};
  }
}

}  // namespace tutti::link
