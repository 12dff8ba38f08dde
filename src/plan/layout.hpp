// layout.hpp: which elements belong to whom: blocks of an array, sizes of input and output, and what in_place means.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.hpp"

namespace tutti {

/// An array cut into consecutive blocks. The even forms take no memory, so that plans of thousands of ranks stay cheap.
class Blocks {
 public:
  /// `parts` blocks of `each` elements.
  static Blocks equal(int parts, std::int64_t each);
  /// `total` elements in `parts` blocks whose counts differ by one at most, the longer ones first.
  static Blocks split(std::int64_t total, int parts);
  static Blocks of(std::span<const std::int64_t> counts);

  [[nodiscard]] int parts() const { return parts_; }
  /// Where block `i` starts; offset(parts()) is the total.
  [[nodiscard]] std::int64_t offset(int i) const {
    return begins_.empty() ? i * each_ + std::min<std::int64_t>(i, longer_) : begins_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] std::int64_t count(int i) const { return offset(i + 1) - offset(i); }
  [[nodiscard]] std::int64_t total() const { return offset(parts_); }
  [[nodiscard]] std::int64_t longest() const { return longest_; }
  /// Block `i`, or blocks [first, last), of an array that lies in `whole`.
  [[nodiscard]] Piece block(Piece whole, int i) const { return whole.part(offset(i), count(i)); }
  [[nodiscard]] Piece range(Piece whole, int first, int last) const {
    return whole.part(offset(first), offset(last) - offset(first));
  }

 private:
  int parts_ = 0;
  std::int64_t each_ = 0, longer_ = 0, longest_ = 0;
  std::vector<std::int64_t> begins_;
};

/// One block per rank: what all_gather and gather join, what reduce_scatter and scatter split.
Blocks blocks_of(const Spec& spec);
/// all_to_all: what this rank sends to each, and what it receives from each.
Blocks send_blocks_of(const Spec& spec);
Blocks recv_blocks_of(const Spec& spec);

/// Elements of the caller's arrays on this rank; 0 where the verb has none here.
std::int64_t input_count(const Spec& spec);
std::int64_t output_count(const Spec& spec);

/// Where the spaces lie in memory: input and output share one when the call is in place on this rank.
struct Placement {
  bool shared = false;
  std::int64_t input_begin = 0;   // of the input within the shared memory
  std::int64_t output_begin = 0;  // of the output within it
  std::int64_t shared_count = 0;
};
Placement placement_of(const Spec& spec);

/// Calls `visit(begin, count)` for the segments of `count` elements; segment 0 means one segment.
template <class Visit>
void for_each_segment(std::int64_t count, std::int64_t segment, Visit visit) {
  if (segment <= 0) segment = count;
  for (std::int64_t begin = 0; begin < count; begin += segment) visit(begin, std::min(segment, count - begin));
}

/// Ranks counted from `origin` on: position 0 is the origin. Rooted algorithms put the root there.
struct RotatedRanks {
  int size = 1;
  int origin = 0;
  int me = 0;
  explicit RotatedRanks(const Spec& spec, int from = 0)
      : size(spec.size), origin(from), me((spec.rank - from + spec.size) % spec.size) {}
  /// The rank at `position`, which may run one time around in either direction.
  [[nodiscard]] int rank(int position) const { return (position + origin + size) % size; }
  [[nodiscard]] int wrap(int position) const { return position < 0 ? position + size : position % size; }
};

constexpr int ceil_log2(int value) {
  int bits = 0;
  while ((1 << bits) < value) ++bits;
  return bits;
}
constexpr int floor_power_of_two(int value) {
  int power = 1;
  while (power <= value / 2) power *= 2;
  return power;
}

}  // namespace tutti
