// throughput_curve.hpp: how long a core takes for bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::sim {

/// So many seconds for each byte, or as measured for some sizes, because what fits into a cache goes faster. Who measures with
/// pieces of a size sends, copies or reduces from one such piece to another: twice that size has to fit. Whoever
/// touches other bytes before it comes back to a piece goes at the throughput of half of these bytes, if that is more than the piece.
class ThroughputCurve {
 public:
  struct Point {
    double bytes = 0, seconds = 0;
  };
  ThroughputCurve(double seconds_per_byte)
      : seconds_per_byte_(seconds_per_byte) {}  // NOLINT: a number is the usual throughput
  /// By ascending size. In between, the time is in proportion; below the first and above the last at the throughput of that one.
  explicit ThroughputCurve(std::vector<Point> points);

  /// For a piece, with so many bytes touched since it was touched last, itself included.
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
