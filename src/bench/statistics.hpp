// statistics.hpp: statistics of samples.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace tutti::bench {

/// Of an even number, the mean of the two in the middle. All of these take at least one sample.
double median(std::vector<double> samples);
/// The smallest sample that at least this share (0 to 1) does not exceed.
double percentile(std::vector<double> samples, double share);
double geometric_mean(const std::vector<double>& samples);

}  // namespace tutti::bench
