// report_data.hpp: what the report says, as values: times per verb and size, traffic, overlap, what to try.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "watch/diagnosis.hpp"
#include "watch/timeline.hpp"

namespace tutti::watch {

/// Calls of one verb whose arrays have between half and all of `bytes_max`.
struct SizeRow {
  Verb verb = Verb::barrier;
  std::uint64_t bytes_max = 0;
  std::size_t calls = 0;
  std::uint64_t bytes = 0;
  std::int64_t median_ns = 0, worst_ns = 0, total_ns = 0;
  std::string how{};  // as most of them were carried out
};

/// How a rank has spent the time that is on record.
struct RankTime {
  int rank = 0;
  std::int64_t span_ns = 0, in_calls_ns = 0, waited_ns = 0;
  double overlap =
      -1;  // the part of the time of its asynchronous calls in which it did not wait for them; −1: it made none
};

struct ReportData {
  std::vector<Finding> findings{};
  std::vector<SizeRow> sizes{};
  std::vector<std::vector<double>> traffic{};  // bytes, from a rank to another
  bool has_estimates = false;                  // some of it is what collectives have to move, not what messages moved
  std::vector<Lateness> lateness{};
  std::vector<RankTime> times{};
  std::vector<std::string> advice{};
};
ReportData report_of(const Timeline& timeline);

}  // namespace tutti::watch
