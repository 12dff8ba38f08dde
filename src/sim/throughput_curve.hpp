// throughput_curve.hpp: how long a core takes for bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::sim {

/// A constant number of seconds per byte, or a curve measured for some sizes, because arrays that fit into a cache are
/// faster. A measurement at a size copies or reduces from one array of that size to another, so twice the size has to
/// fit into the cache. A range with a longer reuse distance has the throughput of half that distance, if that is more
/// than its size.
class ThroughputCurve {
 public:
  struct Point {
    double bytes = 0, seconds = 0;
  };
  ThroughputCurve(double seconds_per_byte)
      : seconds_per_byte_(seconds_per_byte) {}  // NOLINT: a number is the usual throughput
  /// By ascending size. In between, the time is in proportion; below the first and above the last at the throughput of
  /// that one.
  explicit ThroughputCurve(std::vector<Point> points);

  /// For a range of `bytes` with the reuse distance `bytes_since`.
  [[nodiscard]] double seconds(std::int64_t bytes, std::int64_t bytes_since) const {
    return static_cast<double>(bytes) * (points_.empty() ? seconds_per_byte_ : measured(bytes, bytes_since));
  }
  /// Of the largest size.
  [[nodiscard]] double seconds_per_byte() const { return seconds_per_byte_; }

 private:
  [[nodiscard]] double measured(std::int64_t bytes, std::int64_t bytes_since) const;

  double seconds_per_byte_ = 0;
  std::vector<Point> points_;
};

/// "4.5", in GB/s, or by size: "4K:9,64K:8,1M:5.5". InvalidArgument that names the option.
ThroughputCurve parse_throughput(const std::string& option, const std::string& text);

}  // namespace tutti::sim
