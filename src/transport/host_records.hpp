// host_records.hpp: the bodies of the records in a ring between two ranks of a host.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <tutti/transport.hpp>

#include "transport/host_ring.hpp"

namespace tutti::transport::host {

// What changes from one message to the next of its kind; everything else is as in the message before. With it, a small
// message fits into one cache line.
struct BriefHead {
  std::uint32_t tag = 0;
  std::uint32_t phase = 0;
  std::uint64_t sequence = 0;
  std::int64_t count = 0;
};
static_assert(sizeof(BriefHead) == 24);

struct FullHead {
  Envelope envelope{};
};
static_assert(sizeof(FullHead) == 64 && std::is_trivially_copyable_v<FullHead>);

// Where the bytes of a message lie in the sender's memory, and the word that says whether they still do.
struct Rts {
  std::uint64_t message = 0;       // the sender's number
  std::uint64_t address = 0;       // in the sender's process
  std::uint64_t arena_offset = 0;  // of the same bytes, or nowhere
  std::uint64_t remote_key_offset = 0;
  static constexpr std::uint64_t nowhere = ~std::uint64_t{0};
};
struct RtsBody {
  Envelope envelope{};
  Rts rts{};
};

struct NotificationBody {
  std::uint64_t message = 0;
};

struct FragmentHead {
  std::uint64_t message = 0;
  std::int64_t offset = 0;
};

inline bool is_brief(const Envelope& last, const Envelope& envelope) {
  const Signature &a = last.signature, &b = envelope.signature;
  return last.group == envelope.group && last.epoch == envelope.epoch && last.channel == envelope.channel &&
         a.verb == b.verb && a.dtype == b.dtype && a.op == b.op && a.flags == b.flags && a.root == b.root &&
         a.detail == b.detail && a.history == b.history;
}

// Copied out once; later looks at shared memory could see something else. MalformedMessage if the body is too short.
template <class Body>
Body read_body(const Record& record) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (record.bytes < sizeof(Body)) throw MalformedMessage("a record in shared memory is shorter than its kind is");
  Body body;
  std::memcpy(&body, record.body, sizeof body);
  return body;
}

}  // namespace tutti::transport::host
