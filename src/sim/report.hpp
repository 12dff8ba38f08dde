// report.hpp: results of simulations, as tables and as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/experiment.hpp"

namespace tutti::sim {

/// "1.25 ms", "12.5 s": three digits.
std::string duration_text(double seconds);
/// "64 KiB", "1.5 MiB", "12 B".
std::string bytes_text(std::int64_t bytes);
/// "ring / 64 KiB".
std::string choice_text(const Choice& choice);

/// One call, the algorithms below each other.
std::string table_of(const Experiment& experiment, const std::vector<Trial>& trials);

/// Several calls below each other, the algorithms side by side: times only. `*` marks the fastest, `<` what is
/// selected.
std::string table_of(const std::vector<std::vector<Trial>>& calls);

/// One object, no line end.
std::string json_of(const Experiment& experiment, const Trial& trial);

}  // namespace tutti::sim
