// control_fuzz.cpp: any bytes are a control message or a MalformedMessage; what is accepted encodes to the same bytes again.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "base/bytes.hpp"
#include "control/message.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tutti::control;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    const Message message = decode(bytes, 9);
    if (!std::ranges::equal(encode(message), bytes)) std::abort();
  } catch (const tutti::MalformedMessage&) {}
  return 0;
}
