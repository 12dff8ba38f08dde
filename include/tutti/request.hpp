// request.hpp: one call in full, and the signature by which ranks notice that they asked for different things.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/op.hpp>
#include <tutti/verb.hpp>
#include <tutti/view.hpp>

namespace tutti {

/// What every rank of a group must agree on in one call. It travels ahead of the data: 32 bytes, compared as a whole, together with
/// a digest of all calls of the group before it.
struct Signature {
  std::uint64_t sequence = 0;  // number of the call on its group
  Verb verb = Verb::barrier;
  DType dtype = DType::uint8;
  Op::Kind op = Op::Kind::sum;
  std::uint8_t flags = 0;
  std::int32_t root = -1;
  std::int64_t count = 0;     // elements of the whole call; 0 where ranks may differ (uneven, see flags)
  std::uint32_t detail = 0;   // hash of what has no field: shape, axis, factor, counts, pairs
  std::uint32_t history = 0;  // see histories_agree()

  static constexpr std::uint8_t uneven = 1;          // sizes differ by rank and are checked pairwise
  static constexpr std::uint8_t differentiated = 2;  // the call takes part in differentiation
  static constexpr std::uint8_t sizes_follow = 4;    // a size-exchange phase goes first
  /// In `history`: as long as no call was refused, 31 bits of the digest of all calls before. Afterwards this bit is set, and 16 bits of
  /// digest follow 15 bits that tell which calls were refused.
  static constexpr std::uint32_t some_refused = 0x80000000u;
  static constexpr int history_bits = 31, history_bits_refused = 16;
  static constexpr std::uint32_t unknown_history = 0xffffffffu << history_bits_refused;

  /// The same call, whatever came before it.
  [[nodiscard]] constexpr bool is_same_call(const Signature& other) const {
    return sequence == other.sequence && verb == other.verb && dtype == other.dtype && op == other.op &&
           flags == other.flags && root == other.root && count == other.count && detail == other.detail;
  }
  friend constexpr bool operator==(const Signature& a, const Signature& b);
};
static_assert(sizeof(Signature) == 32);

/// False if two ranks are known to have made different calls before. Where one of them has not heard of a refused call yet,
/// nothing is known.
constexpr bool histories_agree(std::uint32_t a, std::uint32_t b) {
  if (a == b || ((a ^ b) & Signature::some_refused) != 0) return true;
  if ((a & Signature::some_refused) == 0) return false;
  constexpr int bits = Signature::history_bits_refused;
  return a >> bits != b >> bits || a >> bits == Signature::unknown_history >> bits;
}

constexpr bool operator==(const Signature& a, const Signature& b) {
  return a.is_same_call(b) && histories_agree(a.history, b.history);
}

/// "all_reduce #412 (float32 × 1048576, sum)".
std::string describe(const Signature& signature);

/// One call, in full: what a backend gets. Views are as the caller passed them, checked but not yet packed.
struct Request {
  Verb verb = Verb::barrier;
  View input{}, output{};  // not present where the verb has none on this rank
  Op op = Op::sum;
  int root = 0;
  int axis = 0;         // joined or split along; stacked when `stack`
  int concat_axis = 0;  // all_to_all
  bool stack = false;   // a new first axis, one entry per rank
  bool uneven = false;
  std::vector<std::int64_t> sizes{};         // per rank, along `axis`; all_to_all: what goes to each rank
  std::vector<std::int64_t> recv_sizes{};    // all_to_all: what comes from each rank
  std::vector<std::pair<int, int>> pairs{};  // permute: (source, destination)
  bool differentiated = false;
  std::uint64_t structure = 0;  // hash of the nest of arrays that was fused into this one; all ranks have the same
  bool sizes_follow = false;    // a size-exchange phase goes first (broadcast, scatter, uneven verbs)
  std::uint8_t kind = 0;        // broadcast, scatter: the root's word for what its array is, handed on to `allocate`
  /// Makes the output once its shape is known, where the caller could not: after a size exchange. The last argument is
  /// the root's `kind`.
  std::function<View(DType, std::span<const std::int64_t>, std::uint8_t)> allocate{};
  TimePoint deadline = TimePoint::max();
  Signature signature{};
};

}  // namespace tutti
