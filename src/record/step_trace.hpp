// step_trace.hpp: the steps of collectives, written down where all is traced.
// SPDX-License-Identifier: Apache-2.0
//
// Thread rule: under the rank's lock, as the calls that the steps belong to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/layout.hpp"
#include "record/ticks.hpp"

namespace tutti::record {

struct CallStep {
  std::uint64_t group = 0, sequence = 0;  // the call
  StepKind kind = StepKind::copy;
  std::uint64_t bytes = 0;
  std::int32_t peer = -1;            // of a message: a rank in the world
  std::uint32_t phase = 0, tag = 0;  // of a message: what tells it from the others of its call
};

class StepTrace {
 public:
  /// Of zeros; as many entries as a power of two.
  StepTrace(StepEntry* ring, std::size_t entries, Word& written)
      : ring_(ring), mask_(entries - 1), written_(&written) {}

  /// It is over now. `started`: ticks().
  void note(const CallStep& step, std::uint64_t started) {
    const std::uint64_t number = ++count_;
    StepEntry& entry = ring_[number & mask_];
    entry.number.store(0, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_release);
    entry.started.store(started, std::memory_order_relaxed);
    entry.ended.store(ticks(), std::memory_order_relaxed);
    entry.group = step.group;
    entry.sequence = step.sequence;
    entry.bytes = step.bytes;
    entry.phase = step.phase;
    entry.tag = step.tag;
    entry.peer = step.peer;
    entry.kind = step.kind;
    entry.number.store(number, std::memory_order_release);
    written_->store(number, std::memory_order_relaxed);
  }

 private:
  StepEntry* ring_;
  std::uint64_t mask_, count_ = 0;
  Word* written_;
};

}  // namespace tutti::record
