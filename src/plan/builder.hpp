// builder.hpp: algorithms write steps one after the other; the builder finds out what may run at the same time.
// SPDX-License-Identifier: Apache-2.0
//
// What the builder takes care of, so that an algorithm reads like its description:
//  - dependencies, from the pieces that steps read and write (hazards.hpp), also where input and output are one memory;
//  - message numbers (invariant 2 of plan.hpp);
//  - nothing to do: steps of no elements and copies of a piece onto itself are left out. Both sides of a message know its
//    count, so both leave it out. Only barrier sends empty messages.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/hazards.hpp"
#include "plan/plan.hpp"

namespace tutti {

class PlanBuilder {
 public:
  static constexpr std::uint32_t no_step = UINT32_MAX;

  explicit PlanBuilder(const Spec& spec);

  [[nodiscard]] const Spec& spec() const { return plan_.spec; }
  [[nodiscard]] Piece input() const { return {Space::input, 0, input_count_}; }
  [[nodiscard]] Piece output() const { return {Space::output, 0, output_count_}; }
  /// Fresh scratch; its elements are undefined until written.
  Piece scratch(std::int64_t count);

  /// Each returns the step's index, or no_step where there was nothing to do.
  std::uint32_t send(int peer, Piece from);
  std::uint32_t recv(int peer, Piece to);
  std::uint32_t reduce(Piece from, Piece with, Piece to);
  std::uint32_t copy(Piece from, Piece to);
  /// Only where the spec asks for it.
  std::uint32_t finish(Piece piece);
  std::uint32_t zero(Piece piece);
  std::uint32_t identity(Piece piece);
  /// A request on a subgroup of which this rank is a member. Left out when no member has elements; a copy when alone.
  std::uint32_t call(SubCollective call);

  /// The next step also waits for `step`. For order that does not follow from data: rounds, barriers.
  void after(std::uint32_t step);

  [[nodiscard]] Plan build() &&;

 private:
  struct Edge {
    std::uint32_t before, step;
  };
  [[nodiscard]] bool travels(Piece piece) const;
  std::uint32_t append(const Step& step);
  void reads(Piece piece);
  void writes(Piece piece);
  void wait_for(std::uint32_t step);
  [[nodiscard]] Piece in_memory(Piece piece) const;

  Plan plan_;
  std::int64_t input_count_ = 0, output_count_ = 0;
  bool shared_ = false;
  std::int64_t input_begin_ = 0, output_begin_ = 0;
  Hazards output_hazards_, scratch_hazards_;
  std::vector<std::uint32_t> sent_, received_;  // messages so far, per peer
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> edge_seen_;  // per step, the last step that waits for it, plus one
  std::vector<std::uint32_t> ordered_after_;
};

}  // namespace tutti
