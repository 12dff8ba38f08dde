// program.cpp: programs as text, and where their ranks differ.
// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::mismatch {

using contract::Case;
using contract::Sizing;

std::vector<Case> calls_on(const Program& program, int rank, int group) {
  std::vector<Case> calls;
  for (const ProgramCall& call : program.calls[static_cast<std::size_t>(rank)]) {
    if (call.group == group) calls.push_back(call.what);
  }
  return calls;
}

// Memory, in place or not and asynchronous or not are each rank's own affair. The pairs of a permutation follow from the seed,
// which is that of the call's number.
bool same_call(const Case& a, const Case& b, int group_size) {
  if (a.verb != b.verb) return false;
  if (a.verb == Verb::barrier) return true;
  const auto size = static_cast<std::uint32_t>(group_size);
  if (has_root(a.verb) && a.root % size != b.root % size) return false;
  if (reduces(a.verb) && a.op != b.op) return false;
  return a.dtype == b.dtype && a.length == b.length && a.shape == b.shape && a.sizing == b.sizing;
}

std::optional<Difference> first_difference(const Program& program, int group) {
  const std::vector<int>& members = program.groups[static_cast<std::size_t>(group)];
  std::optional<Difference> first;
  bool lengths_differ = false;
  const std::vector<Case> reference = calls_on(program, members[0], group);
  for (const int rank : members) {
    const std::vector<Case> calls = calls_on(program, rank, group);
    std::size_t index = 0;
    while (index < calls.size() && index < reference.size() &&
           same_call(reference[index], calls[index], static_cast<int>(members.size())))
      ++index;
    if (calls.size() != reference.size()) lengths_differ = true;
    if (index == calls.size() && index == reference.size()) continue;
    const bool missing = index >= calls.size() || index >= reference.size();
    if (!first || index < first->index)
      first = Difference{.index = index, .one = members[0], .other = rank, .missing = missing};
  }
  if (first) first->lengths_differ = lengths_differ;
  return first;
}

std::string describe(const Program& program) {
  constexpr std::string_view styles[] = {"one group", "posted", "in step"};
  std::string text = fmt::format("seed {}: {} ranks, {}, {}, {} works in flight, {}\n", program.seed, program.size,
                                 contract::name_of(program.kind), styles[static_cast<int>(program.style)],
                                 program.works_max, program.closes ? "closing calls" : "no closing calls");
  for (std::size_t i = 0; i < program.groups.size(); ++i)
    text += fmt::format("  group {}: ranks {}\n", i, fmt::join(program.groups[i], " "));
  for (const std::string& mutation : program.mutations) text += fmt::format("  mutated: {}\n", mutation);
  for (std::size_t rank = 0; rank < program.calls.size(); ++rank) {
    const auto& calls = program.calls[rank];
    text += fmt::format("  rank {}: {} calls, {} ms of pause before call {}\n", rank, calls.size(),
                        program.pauses[rank].length.count(), program.pauses[rank].before);
    if (calls.size() > 40) continue;
    for (const ProgramCall& call : calls) text += fmt::format("    group {}: {}\n", call.group, describe(call.what));
  }
  return text;
}

}  // namespace tutti::mismatch
