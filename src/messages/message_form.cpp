// message_form.cpp: the shape of a message's array, read from what another rank sent.
// SPDX-License-Identifier: Apache-2.0
#include "messages/message_form.hpp"

#include <fmt/format.h>

#include "base/bytes.hpp"

namespace tutti::messages {
namespace {

// Compared without multiplying beyond 64 bits: the lengths are another rank's word.
bool make_up(std::span<const std::int64_t> lengths, std::int64_t count) {
  if (std::ranges::any_of(lengths, [](std::int64_t length) { return length < 0; })) return false;
  if (std::ranges::find(lengths, 0) != lengths.end()) return count == 0;
  for (const std::int64_t length : lengths) {
    if (count == 0 || count % length != 0) return false;
    count /= length;
  }
  return count == 1;
}

}  // namespace

MessageShape shape_told(std::span<const std::byte> head) {
  MessageShape shape{.axes = static_cast<std::int32_t>(head.size() / sizeof(std::int64_t))};
  if (shape.axes > View::max_axes || head.size() % sizeof(std::int64_t) != 0)
    throw MalformedMessage(fmt::format("the shape of a message has {} bytes", head.size()));
  std::ranges::copy(head, std::as_writable_bytes(std::span(shape.lengths)).begin());
  return shape;
}

MessageShape shape_in(const Envelope& envelope, const MessageShape& told) {
  const Signature& signature = envelope.signature;
  const auto axes = static_cast<std::int32_t>(envelope.phase & axes_mask);
  MessageShape shape = needs_shape(envelope) ? told : MessageShape{.axes = axes};
  if (!needs_shape(envelope) && axes == 1) shape.lengths[0] = signature.count;
  if (!needs_shape(envelope) && axes == 2) {
    shape.lengths[1] = static_cast<std::int64_t>(signature.sequence);
    shape.lengths[0] = shape.lengths[1] > 0 ? signature.count / shape.lengths[1] : -1;
  }
  const bool is_known = static_cast<int>(signature.dtype) < dtype_count && shape.axes == axes && axes <= View::max_axes;
  const std::span lengths(shape.lengths.data(), static_cast<std::size_t>(is_known ? axes : 0));
  if (!is_known || !make_up(lengths, signature.count) ||
      envelope.bytes / static_cast<std::int64_t>(size_of(signature.dtype)) != signature.count ||
      envelope.bytes % static_cast<std::int64_t>(size_of(signature.dtype)) != 0) {
    throw MalformedMessage(fmt::format("a message of {} bytes says that it has {} elements of dtype {} on {} axes",
                                       envelope.bytes, signature.count, static_cast<int>(signature.dtype), axes));
  }
  return shape;
}

}  // namespace tutti::messages
