// intranode_members.hpp: for the tests: all members of a group in one process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "intranode/intranode_group.hpp"
#include "tests/support/execution_start.hpp"
#include "tests/support/heap_segment.hpp"

namespace tutti::intranode {

/// A collective that was prepared and started. What start() threw is thrown by the next poll().
class Execution {
 public:
  explicit Execution(std::unique_ptr<PreparedCall> call) : call_(std::move(call)) {}
  void start(const Buffers& arrays, const Signature& signature) {
    try {
      is_over_ = call_->start(arrays, signature);
    } catch (...) {
      thrown_ = std::current_exception();
    }
    if (!is_over_) return;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    call_->wake_peers();
  }
  bool poll() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    return is_over_ || call_->poll();
  }
  void cancel() {
    call_->cancel();
    is_over_ = false;
  }
  [[nodiscard]] Progress progress() const { return call_->progress(); }

 private:
  std::unique_ptr<PreparedCall> call_;
  bool is_over_ = false;
  std::exception_ptr thrown_;
};

/// One member: prepares and starts in one step, and keeps what it has started.
class Member : public IntranodeGroup {
 public:
  using IntranodeGroup::IntranodeGroup;
  Execution& start(const ExecutionStart& start) {
    executions_.push_back(std::make_unique<Execution>(prepare({.spec = *start.spec,
                                                               .dtype = start.dtype,
                                                               .op = start.op,
                                                               .divisor = start.divisor,
                                                               .signature = start.signature,
                                                               .phase = start.phase})));
    run_again(*executions_.back(), start);
    return *executions_.back();
  }
  static void run_again(Execution& execution, const ExecutionStart& start) {
    execution.start({.input = start.input, .output = start.output}, start.signature);
  }
  void release(const Execution& execution) {
    std::erase_if(executions_, [&](const auto& each) { return each.get() == &execution; });
  }

 private:
  std::vector<std::unique_ptr<Execution>> executions_;
};

class Members {
 public:
  enum class Arrays { elsewhere, in_common, readable };  // what peers can reach of each other's arrays

  Members(int size, const SharedLimits& limits, Arrays arrays = Arrays::elsewhere) {
    std::vector<std::uint64_t> offsets;
    for (int rank = 0; rank < size; ++rank) {
      segment_.push_back(std::make_unique<HeapSegment>());
      segment_.back()->all_in_common = arrays == Arrays::in_common;
      groups_.push_back(std::make_unique<Member>(IntranodeGroup::Parts{.segment = segment_.back().get(),
                                                                       .rank = rank,
                                                                       .size = size,
                                                                       .cross_memory = arrays == Arrays::readable,
                                                                       .limits = limits}));
      offsets.push_back(groups_.back()->control_block_offset());
    }
    for (auto& group : groups_) group->connect(offsets);
  }
  [[nodiscard]] int size() const { return static_cast<int>(groups_.size()); }
  Member& operator[](int rank) { return *groups_[static_cast<std::size_t>(rank)]; }
  HeapSegment& segment(int rank) { return *segment_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<std::unique_ptr<HeapSegment>> segment_;
  std::vector<std::unique_ptr<Member>> groups_;
};

/// Polls executions in random order until all are done. Fails if they do not get there.
inline void poll_all(const std::vector<Execution*>& executions, Random& random) {
  std::vector<Execution*> open(executions);
  for (int tries = 0; !open.empty(); ++tries) {
    ASSERT_LT(tries, 200'000) << open.size() << " of " << executions.size()
                              << " bodies stand still: " << open[0]->progress().how;
    const std::size_t i = random.below(open.size());
    if (!open[i]->poll()) continue;
    open[i] = open.back();
    open.pop_back();
  }
}

}  // namespace tutti::intranode
