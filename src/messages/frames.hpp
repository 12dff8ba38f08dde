// frames.hpp: the frames of the message protocol, and what their heads say.
// SPDX-License-Identifier: Apache-2.0
//
//   sender → receiver   brief, full (a whole message) · rts (message, remote key) · fragment (receive, offset) · cancel (message) ·
//                       shape (of messages with many axes that follow) · ask_back (message)
//   receiver → sender   cts (message, receive) · fin (message) · credit (bytes) · given_back (message) · refused (message)
//
// A message of up to the eager limit travels at once, as long as the credit lasts. A longer one is announced (rts). Its receiver
// reads it from the sender's memory and says fin, where the link can do that; otherwise it asks for the bytes (cts), which come in
// fragments. A message that the receiver does not want is answered by fin alone; by refused, if no receive gets it any more because the
// receiver leaves the job. cancel takes an announced message back, whatever the receiver has done with it; ask_back only if no receive
// has found it, which given_back confirms.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <tutti/link.hpp>

#include "base/bytes.hpp"

namespace tutti::messages {

enum class FrameType : std::uint8_t {
  brief = 1,        // BriefHead, payload
  full = 2,         // Envelope, payload
  rts = 3,          // RtsHead, remote key
  cts = 4,          // Numbers: the sender's number of the message, the receiver's number of the receive
  fragment = 5,     // Numbers: the receiver's number, offset; payload
  cancel = 6,       // Numbers: the sender's number
  fin = 7,          // Numbers: the sender's number
  credit = 8,       // Numbers: bytes
  shape = 9,        // lengths of axes: of the messages that say so, until the next such frame
  ask_back = 10,    // Numbers: the sender's number
  given_back = 11,  // Numbers: the sender's number
  refused = 12,     // Numbers: the sender's number
};

// What travels is the little-endian picture of these structs.
static_assert(std::endian::native == std::endian::little, "a big-endian machine has to swap the numbers here");

// What changes from one message to the next of its kind; everything else is as in the last message with a full head. With it, a small
// message fits into one cache line.
struct BriefHead {
  std::uint32_t tag = 0;
  std::uint32_t phase = 0;
  std::uint64_t sequence = 0;
  std::int64_t count = 0;
};
static_assert(sizeof(BriefHead) == 24);
static_assert(sizeof(Envelope) == 64 && std::is_trivially_copyable_v<Envelope>);

/// The envelope of the message, given that of the last one.
inline void apply(const BriefHead& head, std::int64_t bytes, Envelope& envelope) {
  envelope.tag = head.tag;
  envelope.phase = head.phase;
  envelope.signature.sequence = head.sequence;
  envelope.signature.count = head.count;
  envelope.bytes = bytes;
}

struct RtsHead {
  Envelope envelope{};
  std::uint64_t message = 0;  // the sender's number
};
static_assert(sizeof(RtsHead) + RemoteKey::bytes_max <= frame_head_bytes_max);

struct Numbers {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};
static_assert(sizeof(Numbers) == 16);

template <class Head>
std::span<const std::byte> bytes_of(const Head& head) {
  static_assert(std::is_trivially_copyable_v<Head>);
  return std::as_bytes(std::span(&head, 1));
}

// Copied out once: later looks at shared memory could see something else. MalformedMessage if the head is too short.
template <class Head>
Head head_of(const Frame& frame) {
  static_assert(std::is_trivially_copyable_v<Head>);
  if (frame.head.size() < sizeof(Head)) [[unlikely]]
    throw MalformedMessage("the head of a frame is shorter than its type is");
  Head head;
  std::memcpy(&head, frame.head.data(), sizeof head);
  return head;
}

// Whether a brief head says all of `envelope` to a receiver that knows `last`.
inline bool is_brief(const Envelope& last, const Envelope& envelope) {
  const Signature &a = last.signature, &b = envelope.signature;
  return last.group == envelope.group && last.epoch == envelope.epoch && last.channel == envelope.channel &&
         a.verb == b.verb && a.dtype == b.dtype && a.op == b.op && a.flags == b.flags && a.root == b.root &&
         a.detail == b.detail && a.history == b.history;
}

// MalformedMessage if no rank would send it.
void check(const Envelope& envelope);

}  // namespace tutti::messages
