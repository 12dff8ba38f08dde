// diagnosis.hpp: what is the matter with a job, in sentences: who waits, who is missing, who made another call, who is gone, who is slow.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "watch/timeline.hpp"

namespace tutti::watch {

struct Finding {
  enum class Kind : std::uint8_t { mismatch, gone, missing, failed, slow, waiting };
  Kind kind = Kind::waiting;
  std::string text{};
  std::vector<int> ranks{};  // whom it names as the cause
};
std::string_view name_of(Finding::Kind kind);

/// The worst first; empty: nothing is the matter.
std::vector<Finding> diagnose(const Timeline& timeline);

/// Where one rank stands: "in all_reduce #412 (float32 × 1024, sum) at train.py:41 for 3.2 s", "not in Tutti: at data.py:88 in load".
std::string say_where(const RankView& rank);
/// The first line of a stack: "data.py:88 in load"; empty: not known.
std::string innermost_line(const std::string& stack);

/// How often and by how much a rank was the last to come into calls that wait for all.
struct Lateness {
  int rank = 0;
  std::size_t times_last = 0, calls = 0;
  std::int64_t late_ns = 0;  // that the others waited for it
};
std::vector<Lateness> lateness_of(const Timeline& timeline);

}  // namespace tutti::watch
