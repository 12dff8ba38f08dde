// select.hpp: which algorithm serves a request: a pure function of facts that all ranks share.
// SPDX-License-Identifier: Apache-2.0
//
// Ranks must make the same choice without communication. So the choice may depend only on what is in the request's
// signature, on the group's topology, and on the table that rank 0 hands to all when the group is made; never on the
// root, on in_place, on addresses, or on anything measured by one rank.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/cost.hpp"
#include "plan/shared_limits.hpp"

namespace tutti {

struct Choice {
  Algorithm algorithm = Algorithm::automatic;
  std::int64_t segment_bytes = 0;  // 0: do not cut
  /// For Spec::segment. An element longer than a segment makes segments of one element.
  [[nodiscard]] std::int64_t segment(std::int64_t element_bytes) const {
    return segment_bytes == 0 ? 0 : std::max<std::int64_t>(1, segment_bytes / element_bytes);
  }
  friend bool operator==(const Choice&, const Choice&) = default;
};

/// A user's override: for this verb, these numbers of ranks and these bytes (both ends included), use this.
struct TableRow {
  Verb verb = Verb::all_reduce;
  int ranks_min = 1;
  int ranks_max = INT32_MAX;
  std::int64_t bytes_min = 0;
  std::int64_t bytes_max = INT64_MAX;
  Choice choice{};
  friend bool operator==(const TableRow&, const TableRow&) = default;
};

/// Rows take precedence, the first that fits and serves; then the cost model decides. Nothing is selected for local
/// peers in shared memory; there the limits decide how bytes move.
struct Table {
  CostModel model{};
  std::vector<TableRow> rows{};
  SharedLimits shared{};
  friend bool operator==(const Table&, const Table&) = default;
};

/// JSON. from_text throws InvalidArgument that says what is wrong and where.
std::string to_text(const Table& table);
Table table_from_text(std::string_view text);

struct Candidate {
  Choice choice;
  Cost cost;
};

/// Every algorithm that serves, each with its best segment, the cheapest first.
std::vector<Candidate> candidates(const Shape& shape, const Table& table);

/// Always an algorithm that serves. An uneven all_to_all is served by pairwise, whose ranks need not know each other's
/// counts.
Choice select(const Shape& shape, const Table& table);

}  // namespace tutti
