// throughput_curve.cpp: how long a core takes for bytes.
// SPDX-License-Identifier: Apache-2.0
#include "sim/throughput_curve.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "launch/sizes.hpp"

namespace tutti::sim {

namespace {

double seconds_per_byte_of(const std::string& option, const std::string& text) {
  double speed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), speed);
  if (error == std::errc{} && end == text.data() + text.size() && speed > 0) return 1e-9 / speed;
  throw InvalidArgument(
      fmt::format("{} {}: more than 0 GB/s is needed, such as 4.5, or by size, such as 4K:9,1M:5.5", option, text));
}

}  // namespace

ThroughputCurve::ThroughputCurve(std::vector<Point> points) : points_(std::move(points)) {
  seconds_per_byte_ = points_.back().seconds / points_.back().bytes;
}

// Seconds per byte.
double ThroughputCurve::measured(std::int64_t piece_bytes, std::int64_t bytes_since) const {
  const auto bytes = static_cast<double>(std::max(piece_bytes, bytes_since / 2));
  const auto above =
      std::find_if(points_.begin(), points_.end(), [&](const Point& point) { return point.bytes >= bytes; });
  if (above == points_.end()) return seconds_per_byte_;
  if (above == points_.begin()) return above->seconds / above->bytes;
  const Point& below = *(above - 1);
  const double share = (bytes - below.bytes) / (above->bytes - below.bytes);
  return (below.seconds + (above->seconds - below.seconds) * share) / bytes;
}

ThroughputCurve parse_throughput(const std::string& option, const std::string& text) {
  if (text.find(':') == std::string::npos) return seconds_per_byte_of(option, text);
  std::vector<ThroughputCurve::Point> points;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t colon = std::min(part.find(':'), part.size());
    const auto bytes = static_cast<double>(launch::parse_size(option, part.substr(0, colon)));
    const std::string speed = colon < part.size() ? part.substr(colon + 1) : "";
    points.push_back({.bytes = bytes, .seconds = bytes * seconds_per_byte_of(option, speed)});
    if (bytes <= (points.size() > 1 ? points[points.size() - 2].bytes : 0)) {
      throw InvalidArgument(fmt::format("{} {}: sizes above 0 are needed, the smallest first", option, text));
    }
    begin = end + 1;
  }
  return ThroughputCurve(std::move(points));
}

}  // namespace tutti::sim
