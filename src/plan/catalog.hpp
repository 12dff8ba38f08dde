// catalog.hpp: the table of all algorithms: which verb each serves, under which conditions, and who writes its steps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "plan/builder.hpp"
#include "plan/plan.hpp"

namespace tutti {

struct CatalogRow {
  Verb verb;
  Algorithm algorithm;
  void (*write)(PlanBuilder&);
  std::int64_t (*scratch_max)(const Spec&);  // elements of scratch it takes at most
  bool even_only = false;                    // needs the same count for every rank
  bool segments = false;                     // cuts into segments as spec.segment says; the others ignore it
  bool in_rank_order = false;                // keeps the order of ranks where the spec asks for it
};

/// Sorted by verb; the first row of a verb serves every size and every pattern of counts.
std::span<const CatalogRow> catalog();
std::span<const CatalogRow> catalog(Verb verb);
/// The row, or nullptr.
const CatalogRow* find_algorithm(Verb verb, Algorithm algorithm);

/// Whether `algorithm` can make a plan of this shape. It depends on nothing that differs between ranks.
bool serves(const CatalogRow& row, const Spec& spec);

/// The most scratch that the plan of `spec` may take, by its algorithm's declaration.
std::int64_t scratch_max(const Spec& spec);

std::string_view name_of(Algorithm algorithm);
/// The inverse of name_of; throws InvalidArgument with the list of names.
Algorithm algorithm_from_name(std::string_view name);

}  // namespace tutti
