// check_steps.cpp: what must hold for one rank's plan by itself.
// SPDX-License-Identifier: Apache-2.0
#include "verify/check_steps.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace tutti {

namespace {

constexpr std::uint32_t nobody = UINT32_MAX;

const char* space_name(Space space) {
  return space == Space::input ? "input" : space == Space::output ? "output" : "scratch";
}

bool reads_from(Act act) { return act == Act::send || act == Act::reduce || act == Act::copy || act == Act::call; }
bool writes_to(Act act) { return act != Act::send; }

}  // namespace

std::string StepChecker::check(const Plan& plan) {
  input_count_ = input_count(plan.spec);
  output_count_ = output_count(plan.spec);
  place_ = placement_of(plan.spec);
  std::string problem = check_graph(plan);
  if (problem.empty()) problem = check_pieces(plan);
  if (problem.empty()) problem = check_order(plan);
  return problem;
}

std::string StepChecker::check_graph(const Plan& plan) {
  const std::size_t steps = plan.steps.size();
  if (plan.unlock_begin.size() != steps + 1 || plan.unlock_begin[0] != 0 ||
      plan.unlock_begin[steps] != plan.unlocks.size()) {
    return "the lists of successors do not cover the steps";
  }
  words_ = steps / 64 + 1;
  ancestors_.assign(steps * words_, 0);
  needs_.assign(steps, 0);
  for (std::uint32_t step = 0; step < steps; ++step) {
    if (plan.unlock_begin[step] > plan.unlock_begin[step + 1])
      return fmt::format("step {}: successors run backwards", step);
    for (std::uint32_t i = plan.unlock_begin[step]; i < plan.unlock_begin[step + 1]; ++i) {
      const std::uint32_t next = plan.unlocks[i];
      if (next <= step || next >= steps)
        return fmt::format("step {} unlocks step {}, which is not after it", step, next);
      ++needs_[next];
      std::uint64_t* row = &ancestors_[next * words_];
      for (std::size_t w = 0; w < words_; ++w) row[w] |= ancestors_[step * words_ + w];
      row[step / 64] |= std::uint64_t{1} << step % 64;
    }
  }
  for (std::size_t step = 0; step < steps; ++step) {
    if (needs_[step] != plan.steps[step].needs) {
      return fmt::format("step {} says it needs {} steps, but {} unlock it", step, plan.steps[step].needs,
                         needs_[step]);
    }
  }
  return "";
}

std::string StepChecker::check_pieces(const Plan& plan) const {
  const auto outside = [&](Piece piece) {
    const std::int64_t size = piece.space == Space::input    ? input_count_
                              : piece.space == Space::output ? output_count_
                                                             : plan.scratch_count;
    return piece.count < 0 || (piece.count > 0 && (piece.offset < 0 || piece.offset + piece.count > size));
  };
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    for (const Piece piece : {step.from, step.with, step.to}) {
      if (outside(piece)) {
        return fmt::format("step {}: {}[{}, {}) is out of bounds", i, space_name(piece.space), piece.offset,
                           piece.offset + piece.count);
      }
    }
    const bool alike = (step.act != Act::copy && step.act != Act::reduce) || step.from.count == step.to.count;
    if (!alike || (step.act == Act::reduce && step.with.count != step.to.count)) {
      return fmt::format("step {}: its pieces differ in count", i);
    }
    if (writes_to(step.act) && step.to.count > 0 && step.to.space == Space::input && !place_.shared) {
      return fmt::format("step {} writes to the input", i);
    }
    if (step.act == Act::finish && !plan.spec.finish)
      return fmt::format("step {} finishes, which was not asked for", i);
  }
  return "";
}

bool StepChecker::ordered(std::uint32_t before, std::uint32_t step) const {
  return (ancestors_[step * words_ + before / 64] >> before % 64 & 1) != 0;
}

StepChecker::ElementAccess* StepChecker::accesses_of(Piece piece) {
  if (piece.space == Space::scratch) return &scratch_[static_cast<std::size_t>(piece.offset)];
  if (!place_.shared) {
    if (piece.space == Space::input) return nullptr;  // never written, as check_pieces saw
    return &memory_[static_cast<std::size_t>(piece.offset)];
  }
  const std::int64_t begin = piece.space == Space::input ? place_.input_begin : place_.output_begin;
  return &memory_[static_cast<std::size_t>(begin + piece.offset)];
}

std::string StepChecker::read(std::uint32_t step, Piece piece) {
  ElementAccess* cells = piece.count == 0 ? nullptr : accesses_of(piece);
  for (std::int64_t i = 0; cells != nullptr && i < piece.count; ++i) {
    ElementAccess& access = cells[i];
    if (access.writer != nobody && !ordered(access.writer, step)) {
      return fmt::format("step {} reads {}[{}], which step {} may be writing at the same time", step,
                         space_name(piece.space), piece.offset + i, access.writer);
    }
    readers_.push_back({.step = step, .next = access.readers});
    access.readers = static_cast<std::uint32_t>(readers_.size() - 1);
  }
  return "";
}

std::string StepChecker::write(std::uint32_t step, Piece piece) {
  ElementAccess* cells = piece.count == 0 ? nullptr : accesses_of(piece);
  for (std::int64_t i = 0; cells != nullptr && i < piece.count; ++i) {
    ElementAccess& access = cells[i];
    std::uint32_t clash = access.writer != nobody && !ordered(access.writer, step) ? access.writer : nobody;
    for (std::uint32_t r = access.readers; r != nobody; r = readers_[r].next) {
      if (readers_[r].step != step && !ordered(readers_[r].step, step)) clash = readers_[r].step;
    }
    if (clash != nobody) {
      return fmt::format("step {} writes {}[{}], which step {} may be using at the same time", step,
                         space_name(piece.space), piece.offset + i, clash);
    }
    access = {.writer = step, .readers = nobody};
  }
  return "";
}

std::string StepChecker::check_order(const Plan& plan) {
  const ElementAccess fresh{.writer = nobody, .readers = nobody};
  memory_.assign(static_cast<std::size_t>(place_.shared ? place_.shared_count : output_count_), fresh);
  scratch_.assign(static_cast<std::size_t>(plan.scratch_count), fresh);
  readers_.clear();
  std::string problem;
  for (std::uint32_t i = 0; i < plan.steps.size() && problem.empty(); ++i) {
    const Step& step = plan.steps[i];
    if (reads_from(step.act)) problem = read(i, step.from);
    if (problem.empty() && step.act == Act::reduce) problem = read(i, step.with);
    if (problem.empty() && writes_to(step.act)) problem = write(i, step.to);
  }
  return problem;
}

}  // namespace tutti
