// report.hpp: results as a table in the manner of nccl-tests, and as JSON lines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/comparison.hpp"

namespace tutti::bench {

/// Bytes that the verb must move over the busiest link, over the bytes of the call: what nccl-tests calls bus bandwidth.
double bus_factor(Verb verb, int ranks);
/// GB (10⁹ bytes) per second.
double algorithm_bandwidth(const BenchCase& bench_case, double us);

/// How many columns the table has.
struct TableShape {
  bool names_library = false;  // more than one of ours
  bool has_peers = false;
  bool has_limits = false;
};

std::string table_head(const TableShape& shape);
/// One line for each library of ours.
std::string table_lines(const Row& row, const TableShape& shape);
/// The geometric mean of the ratios to the best peer, the lowest of them, and what went wrong; one line for each library.
std::string table_foot(const std::vector<Row>& rows);

/// One object per line and library; libraries without a time are left out.
std::string json_lines(const Row& row);

}  // namespace tutti::bench
