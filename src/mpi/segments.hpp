// segments.hpp: how the arrays of one call go through MPI: in segments, copied into memory of the library and back.
// SPDX-License-Identifier: Apache-2.0
//
// MPI cannot be told to give a collective up. So it never sees the caller's memory: a call that is given up leaves a segment behind, which
// stays, and the caller's arrays are free at once (docs/decisions/0011-mpi-works-on-copies.md). Segments also keep counts below 2³¹ and the
// memory of a call bounded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/executor.hpp"
#include "mpi/plugin/plugin_api.hpp"
#include "mpi/round_record.hpp"
#include "plan/layout.hpp"

namespace tutti::mpi {

/// A segment on its way: MPI's memory and MPI's arguments. Reused for many.
struct Segment {
  std::byte* send = nullptr;
  std::byte* recv = nullptr;
  std::vector<int> counts{}, offsets{}, recv_counts{}, recv_offsets{};
  TuttiMpiCollective what{};
  std::int64_t begin = 0;  // first element of each block
};

/// Two segments and what they are copied from fit a core's cache where few ranks share a host; many ranks have no less than this to send at a time.
constexpr std::int64_t segment_bytes_per_rank = 128 << 10, segment_bytes_usual_max = 16 << 20;
constexpr std::int64_t usual_segment_bytes(int ranks) {
  return std::min(ranks * segment_bytes_per_rank, segment_bytes_usual_max);
}

class Segments {
 public:
  /// Segments of about so many bytes; each rank's block is cut into pieces of the same length. The same on all ranks.
  Segments(const ExecutionSpec& what, std::int64_t segment_bytes);

  /// How many there are. Where blocks differ from pair to pair of ranks (all_to_all), by the longest block of any two.
  [[nodiscard]] std::int64_t count() const { return count_of(longest_); }
  [[nodiscard]] std::int64_t count_of(std::int64_t longest) const { return (longest + piece_ - 1) / piece_; }
  [[nodiscard]] std::int64_t longest() const { return longest_; }
  [[nodiscard]] std::size_t send_bytes() const { return static_cast<std::size_t>(send_count_) * element_; }
  [[nodiscard]] std::size_t recv_bytes() const { return static_cast<std::size_t>(recv_count_) * element_; }

  /// Whether segments of the output may lie on input that has not been copied yet: the input is copied as a whole first.
  [[nodiscard]] bool needs_whole_input() const {
    return what_.spec.verb == Verb::all_to_all && what_.spec.in_place && !what_.spec.counts.empty();
  }
  /// Copies segment `index` of the input into `segment`, and says what MPI is to do with it.
  void fill(Segment& segment, std::int64_t index, const std::byte* input) const;
  /// Copies what MPI has made of it into the output.
  void drain(const Segment& segment, std::byte* output) const;
  /// What MPI does not write: where nothing arrives, and before the first rank of a prefix.
  void write_rest(std::byte* output) const;

  /// How the elements travel in a record; Fused::nothing: they do not fit, or the verb cannot.
  [[nodiscard]] Fused fused() const { return fused_; }
  void fill(RoundRecord& record, const std::byte* input) const;
  void drain(const RoundRecord& record, std::byte* output) const;

 private:
  [[nodiscard]] std::int64_t piece_of(std::int64_t count, std::int64_t begin) const;
  [[nodiscard]] bool is_root() const { return what_.spec.rank == what_.spec.root; }
  void lay_out(const Blocks& blocks, std::int64_t begin, std::vector<int>& counts, std::vector<int>& offsets) const;
  void copy(std::byte* to, const std::byte* from, std::int64_t count) const;
  /// The pieces of all blocks, between the array and the segment.
  void pack(std::byte* to, const std::byte* from, const Blocks& blocks, std::int64_t begin) const;
  void unpack(const std::byte* from, std::byte* to, const Blocks& blocks, std::int64_t begin) const;
  void deliver(std::byte* to, const std::byte* from, std::int64_t count) const;
  /// Null where there is no array.
  template <class Byte>
  [[nodiscard]] Byte* at(Byte* base, std::int64_t element) const {
    return base == nullptr ? nullptr : base + element * size_;
  }
  void find_fused();
  void find_peers();

  ExecutionSpec what_;
  std::size_t element_;
  std::int64_t size_;
  Blocks blocks_, recv_blocks_;  // one block where the verb has none
  std::int64_t longest_ = 0, piece_ = 1;
  std::int64_t send_count_ = 0, recv_count_ = 0;
  int source_ = -1, destination_ = -1;  // permute
  Fused fused_ = Fused::nothing;
};

}  // namespace tutti::mpi
