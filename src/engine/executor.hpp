// executor.hpp: the middle of a collective: contiguous memory of one dtype, all counts known.
// SPDX-License-Identifier: Apache-2.0
//
// A plan run over a transport is one way to carry it out (plan_executor.hpp), shared memory another (intranode/). A sub-collective of
// a plan is of this kind, too: the executor that serves its members carries it out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <tutti/backend.hpp>
#include <tutti/op.hpp>
#include <tutti/request.hpp>

#include "plan/plan.hpp"

namespace tutti {

/// All that does not depend on the arrays.
struct ExecutionSpec {
  Spec spec{};  // verb, rank, size, root, count or counts, pairs, in_place, finish
  DType dtype = DType::uint8;
  Op op = Op::sum;
  double divisor = 1;     // of a mean (spec.finish)
  Signature signature{};  // of the call that it is part of; number and history come with each start
  std::uint32_t phase =
      0;  // which part of the call: below 256, and growing in the order in which the parts are started
};

/// Carries out collectives for a fixed list of ranks. Ranks in what it throws and in progress() count those of the spec.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Ranks in the world; the spec's rank i is members()[i].
  [[nodiscard]] virtual std::span<const int> members() const = 0;
  virtual std::unique_ptr<PreparedCall> prepare(const ExecutionSpec& what) = 0;
  /// Over what, for reports: "tcp", "shared memory".
  [[nodiscard]] virtual std::string_view medium() const = 0;
  /// Whether small floats (float16, bfloat16, float8) are summed in float32 and rounded once. If not, they come as float32.
  [[nodiscard]] virtual bool widens_small_floats() const { return false; }
  /// Whether a difference is noticed where a rank sends another one fewer or more elements than that one expects. If not, ranks that
  /// know by themselves how much they get compare it first.
  [[nodiscard]] virtual bool compares_counts() const { return true; }
};

}  // namespace tutti
