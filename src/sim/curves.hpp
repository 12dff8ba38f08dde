// curves.hpp: simulated times as a picture: a curve for each algorithm, over ranks or bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/experiment.hpp"
#include "sim/plot.hpp"

namespace tutti::sim {

/// `calls`: the trials of each, either for several numbers of ranks or for several sizes.
Plot plot_of(const Experiment& experiment, const std::vector<std::vector<Trial>>& calls);

}  // namespace tutti::sim
