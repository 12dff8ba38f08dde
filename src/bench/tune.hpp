// tune.hpp: `tutti tune`: which way is fastest on this machine, found out by races between tables.
// SPDX-License-Identifier: Apache-2.0
//
// Nothing is measured behind anybody's back: the table that comes out is a file, which rank 0 of a job reads if TUTTI_TABLE names
// it. Jobs that differ in their table only take turns on the same work; a change is taken if it makes that work faster by
// more than machines vary by themselves. Limits of shared memory are settled one after the other, algorithms over TCP verb
// by verb.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bench_case.hpp"
#include "plan/select.hpp"

namespace tutti::bench {

struct TuneOptions {
  int ranks = 2;
  std::vector<std::string> backends{"shm", "native"};
  int repeats = 7;
  std::string output_path = "tutti-table.json";
};

/// One limit of shared memory, the values to try, and the work that shows the difference.
struct Question {
  std::string_view limit;
  std::vector<std::int64_t> values{};
  std::vector<BenchCase> bench_cases{};
};
inline constexpr std::int64_t never = std::int64_t{1} << 40;  // a limit that no array reaches
/// `oversubscribed`: ranks share cores.
std::vector<Question> questions_about_shared_memory(int ranks, bool oversubscribed);
/// The limit of that name.
std::int64_t& limit_of(SharedLimits& limits, std::string_view name);

/// What was measured: for each contender, the time of each case. The first is what holds so far, the second a copy of it: by how
/// much those two differ is chance.
using Times = std::vector<std::vector<double>>;
struct Standing {
  std::vector<double> speeds{};  // how much faster than the first, in geometric mean over the cases; without the copy
  double noise = 1;              // the faster of the two copies against the other
};
Standing standing_of(const Times& times);
/// The fastest; the first unless another is faster by this factor beyond the noise.
std::size_t winner_of(const Standing& standing, double worth_a_change);

/// The sizes at which algorithms comparison; each stands for those around it.
inline constexpr std::int64_t compared_bytes[] = {64, 1 << 10, 16 << 10, 256 << 10, 4 << 20};
/// Rows for one verb and number of ranks, one choice for each of raced_bytes; neighbours that are alike become one row.
std::vector<TableRow> rows_of(Verb verb, int ranks, const std::vector<Choice>& choices);

/// Prints as it measures, and writes the file.
void run_tune(const TuneOptions& options);

}  // namespace tutti::bench
