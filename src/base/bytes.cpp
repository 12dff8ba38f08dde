// bytes.cpp: the checks of ByteWriter and ByteReader.
// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"

#include <fmt/format.h>

#include <limits>

namespace tutti {

ByteWriter& ByteWriter::blob(std::span<const std::byte> bytes) {
  if (bytes.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw InvalidArgument(
        fmt::format("cannot put {} bytes in a message: its length field holds 32 bits", bytes.size()));
  }
  return u32(static_cast<std::uint32_t>(bytes.size())).raw(bytes);
}

std::span<const std::byte> ByteReader::raw(std::size_t bytes) {
  if (bytes > rest_.size()) {
    throw MalformedMessage(fmt::format("{} of {} bytes ends too early: {} bytes wanted at {}, {} left", what_, size_,
                                       bytes, size_ - rest_.size(), rest_.size()));
  }
  const auto front = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  return front;
}

std::span<const std::byte> ByteReader::blob_view(std::size_t limit) {
  const std::size_t length = u32();
  if (length > limit) {
    throw MalformedMessage(fmt::format("{} of {} bytes holds a field of {} bytes, at most {} are allowed there", what_,
                                       size_, length, limit));
  }
  return raw(length);
}

std::string ByteReader::string(std::size_t limit) {
  const auto bytes = blob_view(limit);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::vector<std::byte> ByteReader::blob(std::size_t limit) {
  const auto bytes = blob_view(limit);
  return {bytes.begin(), bytes.end()};
}

void ByteReader::expect_end() const {
  if (rest_.empty()) return;
  throw MalformedMessage(fmt::format("{} of {} bytes has {} bytes too many at its end", what_, size_, rest_.size()));
}

}  // namespace tutti
