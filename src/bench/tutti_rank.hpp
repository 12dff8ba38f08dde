// tutti_rank.hpp: a rank of Tutti itself: `tutti bench-rank`, started by the coordinator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tutti::bench {

struct TuttiRankOptions {
  std::string socket_path{};  // the coordinator's
  std::string name{};         // of the library, as the coordinator calls it
  std::string backend = "auto";
  std::string meeting_point{};  // for InitOptions::init_method; rank and size come from the environment
};

/// Joins the others and serves turns until the coordinator hangs up.
void run_tutti_rank(const TuttiRankOptions& options);

}  // namespace tutti::bench
