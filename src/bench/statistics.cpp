// statistics.cpp: statistics of samples.
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace tutti::bench {

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

double percentile(std::vector<double> samples, double share) {
  std::sort(samples.begin(), samples.end());
  const double needed = std::ceil(share * static_cast<double>(samples.size()));
  return samples[static_cast<std::size_t>(std::clamp(needed, 1.0, static_cast<double>(samples.size()))) - 1];
}

double geometric_mean(const std::vector<double>& samples) {
  double logarithms = 0;
  for (const double sample : samples) logarithms += std::log(sample);
  return std::exp(logarithms / static_cast<double>(samples.size()));
}

}  // namespace tutti::bench
