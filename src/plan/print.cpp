// print.cpp: a plan as text.
// SPDX-License-Identifier: Apache-2.0
#include "plan/print.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plan/catalog.hpp"

namespace tutti {

namespace {

std::string to_text(Piece piece) {
  constexpr const char* spaces[] = {"input", "output", "scratch"};
  return fmt::format("{}[{}, {})", spaces[static_cast<int>(piece.space)], piece.offset, piece.offset + piece.count);
}

}  // namespace

std::string to_text(const Plan& plan, const Step& step) {
  switch (step.act) {
    case Act::send: return fmt::format("send {} to {} as #{}", to_text(step.from), step.peer, step.tag);
    case Act::recv: return fmt::format("recv {} from {} as #{}", to_text(step.to), step.peer, step.tag);
    case Act::reduce:
      return fmt::format("reduce {} = {} ⊕ {}", to_text(step.to), to_text(step.from), to_text(step.with));
    case Act::copy: return fmt::format("copy {} = {}", to_text(step.to), to_text(step.from));
    case Act::finish: return fmt::format("finish {}", to_text(step.to));
    case Act::zero: return fmt::format("zero {}", to_text(step.to));
    case Act::identity: return fmt::format("identity {}", to_text(step.to));
    case Act::call: break;
  }
  const SubCollective& call = plan.calls[static_cast<std::size_t>(step.call)];
  std::string text = fmt::format("call {} on ranks {}", name_of(call.verb), fmt::join(call.members, " "));
  if (has_root(call.verb)) text += fmt::format(", root {}", call.members[static_cast<std::size_t>(call.root)]);
  if (call.verb != Verb::barrier) text += fmt::format(", {} = {}", to_text(call.to), to_text(call.from));
  return text;
}

std::string to_text(const Plan& plan) {
  const Spec& spec = plan.spec;
  std::string text =
      fmt::format("{} by {}, rank {} of {}", name_of(spec.verb), name_of(spec.algorithm), spec.rank, spec.size);
  if (has_root(spec.verb)) text += fmt::format(", root {}", spec.root);
  text += spec.counts.empty() ? fmt::format(", count {}", spec.count)
                              : fmt::format(", counts {}", fmt::join(spec.counts, " "));
  if (spec.segment > 0) text += fmt::format(", segment {}", spec.segment);
  if (spec.in_place) text += ", in place";
  text += fmt::format(": {} steps, scratch {}\n", plan.steps.size(), plan.scratch_count);

  std::vector<std::vector<std::uint32_t>> needs(plan.steps.size());
  for (std::uint32_t step = 0; step < plan.steps.size(); ++step) {
    for (std::uint32_t i = plan.unlock_begin[step]; i < plan.unlock_begin[step + 1]; ++i)
      needs[plan.unlocks[i]].push_back(step);
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    text += fmt::format("{:>4}  {}", i, to_text(plan, plan.steps[i]));
    if (!needs[i].empty()) text += fmt::format("  after {}", fmt::join(needs[i], " "));
    text += '\n';
  }
  return text;
}

}  // namespace tutti
