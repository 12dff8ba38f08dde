// intranode_group.hpp: collectives of ranks that share a host, carried out in their common memory.
// SPDX-License-Identifier: Apache-2.0
//
// One group for each group (or for the members of one host in a larger group). A member's *control block* lies in its own memory and is
// written by it alone; the others read it. Executions are carried out one after the other, in the order in which they were started,
// which is the same on every member.
//
// Thread rule: one thread at a time. Nothing blocks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <tutti/error.hpp>

#include "intranode/direct.hpp"
#include "intranode/shared_segment.hpp"
#include "intranode/slot_copier.hpp"
#include "intranode/steps.hpp"
#include "record/step_trace.hpp"

namespace tutti::intranode {

/// Where the steps of executions are written down, and as whose.
struct Tracing {
  record::StepTrace* trace = nullptr;  // null: nowhere
  std::uint64_t group = 0;
};

class IntranodeGroup {
 public:
  struct Parts {
    SharedSegment* segment = nullptr;  // outlives the group
    int rank = 0;
    int size = 1;
    bool cross_memory = false;    // every member may read every other's memory: agreed
    bool oversubscribed = false;  // more ranks than cores
    SharedLimits limits{};        // the same on every member
    Tracing tracing{};
  };
  /// Takes this member's control block. Throws Error when memory runs out.
  explicit IntranodeGroup(const Parts& parts);
  /// The control block goes back to the shared segment: only when no peer uses it any more (see is_vacant).
  ~IntranodeGroup();
  IntranodeGroup(const IntranodeGroup&) = delete;
  IntranodeGroup& operator=(const IntranodeGroup&) = delete;

  /// Where this member's control block lies, for the others.
  [[nodiscard]] std::uint64_t control_block_offset() const;
  /// One offset per member. Before the first execution. `for_oversubscribed`: some of them share cores, as all of them know.
  void connect(const std::vector<std::uint64_t>& offsets, bool for_oversubscribed = false);

  /// The spec counts members. Every member starts the same collectives in the same order, or leaves some out. What is prepared is
  /// destroyed before the group.
  std::unique_ptr<PreparedCall> prepare(const ExecutionSpec& what);
  /// The last thing that this member does: it will not touch the others' control blocks any more. No execution is under way.
  void depart();
  /// Whether all others have departed.
  [[nodiscard]] bool is_vacant() const {
    return places_.empty() || own_->departed.load(std::memory_order_acquire) == parts_.size - 1;
  }

 private:
  class IntranodeExecution;
  friend class IntranodeExecution;

  // Inline in group.cpp: a small call passes through all of them.
  inline void enqueue(IntranodeExecution& execution);
  [[noreturn]] static void reject_round_count(const IntranodeExecution& execution);
  inline void log_signature(IntranodeExecution& execution);
  inline void begin(IntranodeExecution& execution);
  inline void begin_slots(IntranodeExecution& execution);
  void continue_after_exchange(IntranodeExecution& execution);
  inline bool advance(IntranodeExecution& execution);
  inline bool advance_single(IntranodeExecution& execution);
  template <bool (IntranodeGroup::*advance_execution)(IntranodeExecution&)>
  [[gnu::always_inline]] inline bool spin(IntranodeExecution& execution);
  inline void dequeue_oldest();
  inline void end_oldest();
  bool progress();
  inline void expect_next(const IntranodeExecution& execution);
  inline void prefetch_awaited(const IntranodeExecution& execution) const;
  [[nodiscard]] Reach reach() const { return {.cross_memory = parts_.cross_memory, .limits = parts_.limits}; }
  inline void write_header(const IntranodeExecution& execution);
  inline void check_peer(const IntranodeExecution& execution, int peer);
  void compare(int peer, const Identity& mine) const;
  void compare_histories(int peer, const Identity& mine, std::uint32_t theirs) const;
  void skip(IntranodeExecution& execution);
  void note_step(const IntranodeExecution& execution, record::StepKind kind);

  Parts parts_;
  ControlBlock* own_ = nullptr;
  std::vector<Place> places_;
  Steps<Native> steps_;
  IntranodeExecution* oldest_ = nullptr;                                       // it alone moves
  std::vector<IntranodeExecution*> later_;                                     // those behind it
  bool begun_ = false;                                                         // the oldest
  std::array<const IntranodeExecution*, SignatureLog::entry_count> logged_{};  // whose signatures are in the log
  // Numbering.
  std::uint64_t sequence_ = 0;
  std::uint64_t next_step_ = 1, executions_of_call_ = 0;
  std::uint64_t step_begun_ = 0;  // in ticks, if steps are written down
};

}  // namespace tutti::intranode
