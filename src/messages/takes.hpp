// takes.hpp: what a rank still receives, and what it answers otherwise.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tutti/transport.hpp>

#include "messages/bins.hpp"
#include "messages/frames.hpp"

namespace tutti::messages {

/// collectives: the rank leaves the job. nothing: it closes its links.
enum class Takes : std::uint8_t { everything, collectives, nothing };

inline bool is_taken(Takes takes, const Envelope& envelope) {
  if (takes == Takes::everything) [[likely]]
    return true;
  return takes == Takes::collectives && envelope.channel == collective_channel;
}

/// The answer to an announced message that is not wanted.
inline FrameType answer(Takes takes, const Envelope& envelope) {
  const bool is_left_behind = takes != Takes::everything && envelope.channel != collective_channel;
  return is_left_behind ? FrameType::refused : FrameType::fin;
}

}  // namespace tutti::messages
