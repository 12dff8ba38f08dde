// ring.cpp: what a reader of a ring makes sure of.
// SPDX-License-Identifier: Apache-2.0
#include "link/ring.hpp"

#include <fmt/format.h>

namespace tutti::link {

void RingReader::reject(const Record& record, std::uint64_t left) {
  throw MalformedMessage(
      fmt::format("its ring in shared memory holds a record that cannot be one (kind {}, {} bytes, {} lines from the "
                  "ring's end); did something overwrite the memory?",
                  static_cast<int>(record.kind()), record.bytes(), left));
}

// A pad: the next record stands at the ring's beginning.
Record RingReader::after_pad(std::uint64_t left) {
  // A pad at the ring's beginning would skip all of it, for ever.
  if (left == lines_) throw MalformedMessage("its ring in shared memory skips all of itself");
  read_ += left;
  return next();
}

}  // namespace tutti::link
