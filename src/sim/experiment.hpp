// experiment.hpp: every algorithm for a call, side by side.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/select.hpp"
#include "sim/cluster.hpp"
#include "sim/loss.hpp"
#include "sim/simulate.hpp"

namespace tutti::sim {

struct Experiment {
  Verb verb = Verb::all_reduce;
  std::int64_t bytes = 0;
  Cluster cluster{};
  Table table{};                        // by which algorithms are selected
  std::vector<Algorithm> algorithms{};  // empty: all that serve
  bool selected_only = false;
  int calls = 1;  // one after the other; times are per call
  bool every_rank = false;
  bool silent_death = false;  // the dead rank's host is gone, too: its connections are not closed
};

struct Trial {
  Choice choice{};
  bool selected = false;
  bool simulated = true;  // otherwise the closed form is all there is: too many messages
  int ranks = 0;
  std::int64_t bytes = 0;
  Outcome outcome{};
  std::optional<Spread> loss{};  // when a rank is dead
};

/// The fastest first. InvalidArgument if an algorithm that is asked for does not serve.
std::vector<Trial> run(const Experiment& experiment);

}  // namespace tutti::sim
