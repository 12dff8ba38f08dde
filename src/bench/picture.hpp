// picture.hpp: the curves of all libraries, for --plot.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/comparison.hpp"
#include "sim/plot.hpp"

namespace tutti::bench {

/// Time over bytes: one curve for each library that has times, ours first, and one for the limit where it was measured. Rows without
/// bytes (barrier) have no place in it.
sim::Plot plot_of(const std::vector<Row>& rows, const std::string& title, const std::string& subtitle);

/// "out.svg" for the first picture, "out-2.svg" for the second, …
std::string picture_path(const std::string& path, int number);

}  // namespace tutti::bench
