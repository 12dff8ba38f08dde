// check_steps.hpp: what must hold for one rank's plan by itself, whatever the others do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plan/layout.hpp"
#include "plan/plan.hpp"

namespace tutti {

/// Checks that pieces lie within their spaces and match each other in count, that the input is not written unless it is
/// the output, that the successor lists agree with `needs`, and that any two steps that touch the same element, one of
/// them writing, are ordered by dependencies. The last one makes the result independent of the schedule: every schedule
/// gives each step the operands that running the steps one after the other would give it.
///
/// It shares no code with the builder. The object only keeps memory between calls.
class StepChecker {
 public:
  /// What is wrong, or an empty string.
  std::string check(const Plan& plan);

 private:
  struct ElementAccess {
    std::uint32_t writer, readers;
  };
  struct Reader {
    std::uint32_t step, next;
  };
  std::string check_graph(const Plan& plan);
  std::string check_pieces(const Plan& plan) const;
  std::string check_order(const Plan& plan);
  [[nodiscard]] bool ordered(std::uint32_t before, std::uint32_t step) const;
  [[nodiscard]] ElementAccess* accesses_of(Piece piece);
  std::string read(std::uint32_t step, Piece piece);
  std::string write(std::uint32_t step, Piece piece);

  std::int64_t input_count_ = 0, output_count_ = 0;
  Placement place_;
  std::size_t words_ = 0;
  std::vector<std::uint64_t> ancestors_;  // a row of bits per step
  std::vector<std::uint32_t> needs_;
  std::vector<ElementAccess> memory_, scratch_;
  std::vector<Reader> readers_;
};

}  // namespace tutti
