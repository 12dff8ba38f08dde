// direct.hpp: large arrays are read, and in arenas written, where they lie.
// SPDX-License-Identifier: Apache-2.0
//
// A *buffer exchange* comes first: every rank tells where its arrays are. From that all ranks conclude alike whether the call reads in
// place, and how:
//   copies        a rank reads another's array in place: mapped if it lies in an arena, by process_vm_readv otherwise
//   reductions    if all inputs and outputs lie in arenas, each rank reduces a slice of all inputs and writes it to all outputs
//                 (push): each input is read once, each output written once; reduce_scatter only reads
// Then every rank does its part, and the call ends when all are through. Peers write arena memory only.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/aligned_buffer.hpp"
#include "engine/executor.hpp"
#include "intranode/shared_segment.hpp"
#include "intranode/transfer_schedule.hpp"
#include "plan/shared_limits.hpp"

namespace tutti::intranode {

/// What a rank tells at the buffer exchange; fits into an inline slot.
struct BufferInfo {
  std::uint64_t input = 0;          // address in its process
  std::uint64_t output = 0;         // likewise
  std::uint64_t input_offset = 0;   // in its arena, plus 1; 0: not there
  std::uint64_t output_offset = 0;  // likewise
  std::uint64_t in_place = 0;
  std::uint64_t streams = 0;  // its result is best taken out of slots, and written past the caches
};
static_assert(sizeof(BufferInfo) <= inline_bytes);

/// Decides whether a call is large enough for a buffer exchange: the same on all ranks.
struct Reach {
  bool cross_memory = false;  // every member may read every other's memory
  SharedLimits limits{};
};
bool is_worth_exchanging(const Spec& spec, std::int64_t element_bytes, const Reach& reach);

/// All but `streams`. Peers may use what lies in the segment until they have consumed `seq`.
BufferInfo buffer_info_of(const ExecutionSpec& what, const Buffers& arrays, SharedSegment& segment, std::uint64_t seq);

enum class DirectWay : std::uint8_t { none, copy, push };

/// What the arrays permit: the same on all ranks.
DirectWay direct_way(const Spec& spec, std::int64_t element_bytes, const std::vector<BufferInfo>& all,
                     const Reach& reach);

class Direct {
 public:
  struct Parts {
    const ExecutionSpec* what = nullptr;
    const Buffers* arrays = nullptr;
    const std::vector<BufferInfo>* all = nullptr;
    SharedSegment* segment = nullptr;
    std::int64_t stream_bytes_min = 0;
  };
  /// What the parts point to outlives the execution.
  void begin(DirectWay way, const Parts& parts);
  [[nodiscard]] DirectWay way() const { return way_; }
  /// This rank's part, in one go.
  void carry_out();

 private:
  void copy_from(int peer, std::int64_t begin, std::int64_t count, std::byte* to) const;
  [[nodiscard]] std::byte* input_of(int rank, std::int64_t begin, std::int64_t count) const;
  [[nodiscard]] std::byte* output_of(int rank, std::int64_t begin, std::int64_t count) const;
  void copy_blocks() const;
  void push_slice();
  void reduce_own_block();
  void reduce(std::byte* to, std::int64_t begin, std::int64_t count);

  Parts parts_;
  const Spec* spec_ = nullptr;
  std::int64_t element_ = 1;
  DirectWay way_ = DirectWay::none;
  std::vector<const void*> operands_;
  bool streams_ = false;
  AlignedBuffer result_;  // a piece of it on its way past the caches
};

}  // namespace tutti::intranode
