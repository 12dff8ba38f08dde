// frame_fuzz.cpp: any bytes, cut anywhere, are frames within the limits or a MalformedMessage; what is accepted encodes
// to the same bytes again.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "wire/frame.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::wire;
  if (size == 0) return 0;
  const std::size_t piece = data[0] % 32 + 1;
  std::span<const std::byte> stream = std::as_bytes(std::span(data, size)).subspan(1);
  constexpr std::uint64_t payload_bytes_max = 1u << 16;
  FrameParser parser({.payload_bytes_max = payload_bytes_max, .extra_bytes_max = 64});
  try {
    while (!stream.empty()) {
      const auto begin = stream;
      while (!parser.complete() && !stream.empty()) {
        stream = stream.subspan(parser.feed(stream.first(std::min(piece, stream.size()))));
      }
      if (!parser.complete()) break;
      require(parser.header().payload_bytes <= payload_bytes_max && parser.header().extra_bytes <= 64);
      const EncodedFrame again(parser.header(), parser.extra());
      require(std::ranges::equal(again.bytes(), begin.first(again.bytes().size())));
      stream = stream.subspan(std::min<std::size_t>(stream.size(), parser.header().payload_bytes));
      parser.next();
    }
  } catch (const tutti::MalformedMessage&) {}
  return 0;
}
