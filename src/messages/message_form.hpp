// message_form.hpp: how a point-to-point message says the shape and the kind of its array.
// SPDX-License-Identifier: Apache-2.0
//
// Envelope::phase holds the number of axes, the kind of array (of which framework it is: tutti/_kinds.py), and whether the lengths of
// the axes are in a MessageShape. An array of up to two axes needs none: the count is known, and signature.sequence is the length of
// the second axis. So messages of small arrays stay as short as they are, and a brief head says all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <tutti/transport.hpp>

namespace tutti::messages {

inline constexpr std::uint32_t axes_mask = 0xff;
inline constexpr int kind_shift = 8;
inline constexpr std::uint32_t has_lengths = 1u << 16;

// Whether the lengths of the axes are in a MessageShape.
inline bool needs_shape(const Envelope& envelope) {
  return (envelope.phase & has_lengths) != 0 && envelope.channel != 0;
}

// Writes shape and kind into the envelope, whose count is known. What does not fit there goes into `lengths`.
inline void write_form(Envelope& envelope, std::span<const std::int64_t> shape, std::uint8_t kind,
                       MessageShape& lengths) {
  envelope.phase = static_cast<std::uint32_t>(shape.size()) | std::uint32_t{kind} << kind_shift;
  envelope.signature.sequence = 0;
  if (shape.size() < 2) [[likely]]
    return;
  if (shape.size() == 2 && shape[1] > 0) {
    envelope.signature.sequence = static_cast<std::uint64_t>(shape[1]);
    return;
  }
  envelope.phase |= has_lengths;
  lengths.axes = static_cast<std::int32_t>(shape.size());
  std::ranges::copy(shape, lengths.lengths.begin());
}

inline std::uint8_t kind_in(const Envelope& envelope) {
  return static_cast<std::uint8_t>(envelope.phase >> kind_shift);
}

// What the head of a `shape` frame says. MalformedMessage if that cannot be.
MessageShape shape_told(std::span<const std::byte> head);

// The lengths of the axes; `told` is what the message's MessageShape was. MalformedMessage if they do not make up the message.
MessageShape shape_in(const Envelope& envelope, const MessageShape& told);

}  // namespace tutti::messages
