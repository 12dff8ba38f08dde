// frames.cpp: what is checked in the head of a message.
// SPDX-License-Identifier: Apache-2.0
#include "messages/frames.hpp"

#include <fmt/format.h>

#include "messages/matching_queue.hpp"

namespace tutti::messages {

void check(const Envelope& envelope) {
  if (envelope.bytes >= 0 && envelope.channel <= internal_channel &&
      static_cast<int>(envelope.signature.verb) < verb_count)
    return;
  throw MalformedMessage(fmt::format("the head of a message makes no sense (channel {}, verb {}, {} bytes)",
                                     envelope.channel, static_cast<int>(envelope.signature.verb), envelope.bytes));
}

}  // namespace tutti::messages
