// prove.cpp: are these plans right?
// SPDX-License-Identifier: Apache-2.0
#include "verify/prove.hpp"

#include <fmt/format.h>

#include "plan/catalog.hpp"
#include "plan/layout.hpp"
#include "verify/check_steps.hpp"
#include "verify/expectation.hpp"
#include "verify/machine.hpp"

namespace tutti {

struct Prover::Memory {
  StepChecker steps;
  Machine machine;
  Expectation expectation;
  std::vector<Expected> expected;
};

namespace {

std::string in_words(const Symbol& symbol, const SymbolNames& names) {
  if (symbol.state == Symbol::State::undefined) return "nothing was written";
  const auto found = names.find(symbol.expression);
  const std::string text = found == names.end() ? "an unknown expression" : found->second;
  return symbol.state == Symbol::State::spoiled ? text + " (reduced or finished wrongly)" : text;
}

std::string in_words(const Expected& expected, const Spec& spec, const SymbolNames& names) {
  switch (expected.kind) {
    case Expected::Kind::untouched: return "nothing";
    case Expected::Kind::exactly: return in_words(expected.symbol, names);
    case Expected::Kind::reduction: break;
  }
  return fmt::format("the contributions of ranks 0 to {}, each once{}",
                     spec.verb == Verb::scan     ? spec.rank
                     : spec.verb == Verb::exscan ? spec.rank - 1
                                                 : spec.size - 1,
                     spec.finish ? ", finished once" : ", not finished");
}

bool fits(const Symbol& got, const Expected& expected) {
  switch (expected.kind) {
    case Expected::Kind::untouched: return got.state == Symbol::State::undefined;
    case Expected::Kind::exactly: return got == expected.symbol;
    case Expected::Kind::reduction:
      return got.contributions == expected.symbol.contributions && got.state == expected.symbol.state;
  }
  return false;
}

std::string check_outputs(const Machine& machine, std::span<const Plan> plans, Expectation& expectation,
                          std::vector<Expected>& expected, const SymbolNames& names) {
  for (int rank = 0; rank < static_cast<int>(plans.size()); ++rank) {
    const Spec& spec = plans[static_cast<std::size_t>(rank)].spec;
    expectation.of(plans, rank, expected);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(expected.size()); ++i) {
      const Expected& wanted = expected[static_cast<std::size_t>(i)];
      const Symbol& got = machine.output(rank, i);
      if (!fits(got, wanted)) {
        return fmt::format("rank {}: output[{}] should hold {}, but holds {}", rank, i, in_words(wanted, spec, names),
                           in_words(got, names));
      }
      if (spec.in_rank_order && wanted.kind == Expected::Kind::reduction && got.first != 0) {
        return fmt::format("rank {}: output[{}] is {}, which is not in the order of ranks", rank, i,
                           in_words(got, names));
      }
      if (spec.verb == Verb::all_reduce && got.expression != machine.output(0, i).expression) {
        return fmt::format("output[{}] is {} on rank 0 and {} on rank {}: another order of reduction, so other bits", i,
                           in_words(machine.output(0, i), names), in_words(got, names), rank);
      }
    }
  }
  return "";
}

// Inputs hold what they held, except where the output lies on them.
std::string check_inputs(const Machine& machine, std::span<const Plan> plans) {
  for (int rank = 0; rank < static_cast<int>(plans.size()); ++rank) {
    const Spec& spec = plans[static_cast<std::size_t>(rank)].spec;
    const Placement place = placement_of(spec);
    const std::int64_t begin = place.output_begin - place.input_begin, end = begin + output_count(spec);
    for (std::int64_t i = 0; i < input_count(spec); ++i) {
      if (place.shared && i >= begin && i < end) continue;
      if (machine.input(rank, i) == input_symbol(rank, i)) continue;
      return fmt::format("rank {}: input[{}] was overwritten", rank, i);
    }
  }
  return "";
}

}  // namespace

std::vector<Plan> make_plans(Spec spec) {
  std::vector<Plan> plans;
  plans.reserve(static_cast<std::size_t>(spec.size));
  for (spec.rank = 0; spec.rank < spec.size; ++spec.rank) plans.push_back(make_plan(spec));
  return plans;
}

Prover::Prover() : memory_(std::make_unique<Memory>()) {}
Prover::~Prover() = default;

Proof Prover::prove(std::span<const Plan> plans, std::uint64_t seed) {
  Proof proof;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    const Plan& plan = plans[rank];
    proof.steps += static_cast<std::int64_t>(plan.steps.size());
    proof.failure = memory_->steps.check(plan);
    if (proof.failure.empty() && plan.scratch_count > scratch_max(plan.spec)) {
      proof.failure =
          fmt::format("takes {} elements of scratch, {} are declared", plan.scratch_count, scratch_max(plan.spec));
    }
    if (!proof.failure.empty()) {
      proof.failure = fmt::format("rank {}: {}", rank, proof.failure);
      return proof;
    }
  }
  const auto attempt = [&](Schedule schedule, Sends sends, SymbolNames* names) {
    const SymbolNames no_names;
    std::string failure = memory_->machine.run(plans, schedule, sends, seed, names);
    if (failure.empty()) {
      failure = check_outputs(memory_->machine, plans, memory_->expectation, memory_->expected,
                              names != nullptr ? *names : no_names);
    }
    return failure.empty() ? check_inputs(memory_->machine, plans) : failure;
  };
  const auto explain = [&](Schedule schedule, Sends sends) {  // run it again and take down what things are
    SymbolNames names;
    proof.failure = attempt(schedule, sends, &names);
  };
  if (!attempt(Schedule::first_ready, Sends::synchronous, nullptr).empty()) {
    explain(Schedule::first_ready, Sends::synchronous);
    return proof;
  }
  proof.messages = memory_->machine.messages();
  if (seed == 0) return proof;
  for (const auto& [schedule, sends] :
       {std::pair{Schedule::last_ready, Sends::synchronous}, std::pair{Schedule::random, Sends::synchronous},
        std::pair{Schedule::random, Sends::eager}}) {
    if (attempt(schedule, sends, nullptr).empty()) continue;
    explain(schedule, sends);
    break;
  }
  return proof;
}

}  // namespace tutti
