// direct.hpp: large arrays are read, and in arenas written, where they lie.
// SPDX-License-Identifier: Apache-2.0
//
// A *meeting* comes first: everyone tells where its arrays are. From all of that everyone concludes alike whether the call goes
// directly, and how:
//   copies        what a rank takes of another is read in place: mapped if it lies in an arena, by process_vm_readv otherwise
//   reductions    if all inputs and outputs lie in arenas, everyone reduces a slice of all inputs and writes it to all outputs
//                 (two-shot push): each input is read once, each output written once; reduce_scatter only reads
// Then everyone does its part, and the call ends when all are through. Peers write arena memory only.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/body.hpp"
#include "shared/commons.hpp"
#include "shared/limits.hpp"
#include "shared/movement.hpp"

namespace tutti::shared {

/// What a rank tells at the meeting; fits into a door.
struct Whereabout {
  std::uint64_t input = 0;          // address in its process
  std::uint64_t input_offset = 0;   // in its arena, plus 1; 0: not there
  std::uint64_t output_offset = 0;  // likewise
  std::uint64_t in_place = 0;
};
static_assert(sizeof(Whereabout) <= inline_bytes);

/// Whether a call is large enough to meet for: the same on all ranks.
bool is_worth_meeting(const Spec& spec, std::int64_t element_bytes, const SharedLimits& limits);

Whereabout whereabout_of(const BodyStart& start, Commons& commons, std::uint64_t stamp);

class Direct {
 public:
  struct Facts {
    Commons* commons = nullptr;
    bool cross_memory = false;
  };
  /// Whether the arrays permit it: the same on all ranks.
  static bool serves(const Spec& spec, const std::vector<Whereabout>& all, bool cross_memory);
  /// This rank's part, in one go.
  void carry_out(const BodyStart& start, const std::vector<Whereabout>& all, Commons& commons);

 private:
  void copy_from(int peer, std::int64_t begin, std::int64_t count, std::byte* to) const;
  [[nodiscard]] std::byte* input_of(int rank, std::int64_t begin, std::int64_t count) const;
  [[nodiscard]] std::byte* output_of(int rank, std::int64_t begin, std::int64_t count) const;
  void copy_blocks() const;
  void push_reduction();
  void reduce_own_block();
  void reduce(std::byte* to, std::int64_t begin, std::int64_t count);

  const BodyStart* start_ = nullptr;
  const Spec* spec_ = nullptr;
  const std::vector<Whereabout>* all_ = nullptr;
  Commons* commons_ = nullptr;
  std::int64_t element_ = 1;
  std::vector<const void*> operands_;
};

}  // namespace tutti::shared
