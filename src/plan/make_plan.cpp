// make_plan.cpp: from a spec to the plan of one rank.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "plan/builder.hpp"
#include "plan/catalog.hpp"
#include "plan/layout.hpp"

namespace tutti {

namespace {

[[noreturn]] void refuse(const Spec& spec, const std::string& why) {
  throw InvalidArgument(
      fmt::format("rank {} of {}: no plan for {}: {}", spec.rank, spec.size, name_of(spec.verb), why));
}

void check_counts(const Spec& spec, const std::vector<std::int64_t>& counts, const char* name) {
  if (counts.empty()) return;
  if (counts.size() != static_cast<std::size_t>(spec.size)) {
    refuse(spec, fmt::format("{} has {} entries, one per rank is needed", name, counts.size()));
  }
  if (*std::min_element(counts.begin(), counts.end()) < 0) refuse(spec, fmt::format("{} has a negative entry", name));
}

void check_pairs(const Spec& spec) {
  std::vector<bool> reached(static_cast<std::size_t>(spec.size));
  for (const auto& [from, to] : spec.pairs) {
    if (from < 0 || from >= spec.size || to < 0 || to >= spec.size) {
      refuse(spec, fmt::format("the pair ({}, {}) names a rank outside the group", from, to));
    }
    if (reached[static_cast<std::size_t>(to)]) refuse(spec, fmt::format("rank {} is the destination of two pairs", to));
    reached[static_cast<std::size_t>(to)] = true;
  }
}

void check(const Spec& spec) {
  if (spec.size < 1 || spec.rank < 0 || spec.rank >= spec.size) refuse(spec, "the rank is outside the group");
  if (has_root(spec.verb) && (spec.root < 0 || spec.root >= spec.size)) {
    refuse(spec, fmt::format("root {} is outside the group", spec.root));
  }
  if (spec.count < 0) refuse(spec, fmt::format("the count {} is negative", spec.count));
  if (spec.segment < 0) refuse(spec, fmt::format("the segment {} is negative", spec.segment));
  check_counts(spec, spec.counts, "counts");
  check_counts(spec, spec.recv_counts, "recv_counts");
  if (spec.counts.empty() != spec.recv_counts.empty() && spec.verb == Verb::all_to_all) {
    refuse(spec, "an uneven all_to_all needs both counts and recv_counts");
  }
  if (!spec.node_of.empty() && spec.node_of.size() != static_cast<std::size_t>(spec.size)) {
    refuse(spec, fmt::format("node_of has {} entries, one per rank is needed", spec.node_of.size()));
  }
  if (spec.verb == Verb::permute) check_pairs(spec);
}

// A group of one: every verb is a copy, or nothing.
void write_alone(PlanBuilder& b) {
  const Spec& spec = b.spec();
  if (spec.verb == Verb::exscan) {
    b.identity(b.output());
  } else if (spec.verb == Verb::permute && spec.pairs.empty()) {
    b.zero(b.output());
  } else if (spec.verb != Verb::barrier) {
    b.copy(b.input(), b.output());
    if (reduces(spec.verb)) b.finish(b.output());
  }
}

}  // namespace

Plan make_plan(const Spec& spec) {
  check(spec);
  const CatalogRow* row = nullptr;
  if (spec.algorithm == Algorithm::automatic) {
    const auto rows = catalog(spec.verb);
    const auto first = std::ranges::find_if(rows, [&](const CatalogRow& each) { return serves(each, spec); });
    if (first != rows.end()) row = &*first;
  } else {
    row = find_algorithm(spec.verb, spec.algorithm);
  }
  if (row == nullptr || !serves(*row, spec)) {
    refuse(spec, fmt::format("the algorithm {} does not serve it{}", name_of(spec.algorithm),
                             row == nullptr       ? ""
                             : spec.in_rank_order ? " in the order of ranks"
                                                  : " for uneven counts"));
  }
  PlanBuilder builder(spec);
  if (spec.size == 1) {
    write_alone(builder);
  } else {
    row->write(builder);
  }
  return std::move(builder).build();
}

}  // namespace tutti
