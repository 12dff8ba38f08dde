// executor.hpp: the middle of a collective, when its arrays are staged: contiguous memory of one dtype, counts known.
// SPDX-License-Identifier: Apache-2.0
//
// A plan run over a transport is one way to carry it out (plan_execution.hpp), shared memory another. A sub-request of a plan
// is an execution, too: whoever serves its members best carries it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <tutti/error.hpp>
#include <tutti/op.hpp>
#include <tutti/request.hpp>

#include "plan/plan.hpp"

namespace tutti {

struct ExecutionStart {
  const Spec* spec =
      nullptr;  // verb, rank, size, root, count or counts, pairs, in_place, finish; outlives the execution
  DType dtype = DType::uint8;
  Op::Kind op = Op::Kind::sum;
  double divisor = 1;  // of a mean (spec->finish)
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  Signature signature{};    // of the call that it is part of
  std::uint32_t phase = 0;  // which part: below 256, and growing in the order in which the parts are started
};

/// A peer takes part in this call with another signature.
class SignatureDiffers : public Error {
 public:
  SignatureDiffers(const std::string& text, int peer, const Signature& theirs)
      : Error(text), peer_(peer), theirs_(theirs) {}
  [[nodiscard]] int peer() const { return peer_; }  // rank of the spec
  [[nodiscard]] const Signature& theirs() const { return theirs_; }

 private:
  int peer_;
  Signature theirs_;
};

/// One execution under way. Never blocks.
class Execution {
 public:
  virtual ~Execution() = default;
  /// Does all that can be done now; true once everything is done.
  virtual bool poll() = 0;
  /// Gives up. Nothing touches the buffers afterwards; the peers' memory is left in a state from which later executions work.
  virtual void cancel() = 0;
  [[nodiscard]] virtual std::string_view how() const = 0;  // "two-shot over shared memory"
  [[nodiscard]] virtual int steps_done() const = 0;
  [[nodiscard]] virtual int step_count() const = 0;
  /// Adds the ranks (of the spec) that it waits for now, each once.
  virtual void add_waiting_for(std::vector<int>& ranks) const = 0;
};

/// Carries out executions for a fixed list of ranks, without plans. They run in the order in which they were started, which is
/// the same on all members.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Ranks in the world; the spec's rank i is members()[i].
  [[nodiscard]] virtual std::span<const int> members() const = 0;
  virtual Execution& start(const ExecutionStart& start) = 0;
  /// After poll() returned true or threw, or after cancel().
  virtual void release(Execution& execution) = 0;
};

}  // namespace tutti
