// host_ring.cpp: what a reader of a ring makes sure of.
// SPDX-License-Identifier: Apache-2.0
#include "transport/host_ring.hpp"

#include <fmt/format.h>

namespace tutti::transport::host {

Record RingReader::checked(std::uint64_t head) {
  for (;;) {
    const auto kind = static_cast<RecordKind>(head & 0xff);
    const auto bytes = static_cast<std::uint32_t>(head >> 32);
    const std::uint64_t left = lines_ - read_ % lines_;
    const bool in_place = (head >> 8 & 0xffff) == (read_ & 0xffff) && (head >> 24 & 0xff) == 0;
    if (!in_place || kind == RecordKind::none || kind > RecordKind::cancel || lines_of(bytes) > left) {
      throw MalformedMessage(
          fmt::format("its ring in shared memory holds a record that cannot be one (kind {}, {} bytes, {} lines from "
                      "the ring's end); did something overwrite the memory?",
                      static_cast<int>(kind), bytes, left));
    }
    if (kind != RecordKind::pad) {
      return {.kind = kind, .bytes = bytes, .body = memory_ + read_ % lines_ * line_bytes + Head::size_bytes};
    }
    // A pad at the ring's beginning would skip all of it, for ever.
    if (left == lines_) throw MalformedMessage("its ring in shared memory skips all of itself");
    read_ += left;
    head = word();
    if (head == 0) return {};
  }
}

}  // namespace tutti::transport::host
