// picture.cpp: the curves of all libraries.
// SPDX-License-Identifier: Apache-2.0
#include "bench/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/environment.hpp"

namespace tutti::bench {

namespace {

constexpr std::size_t marks_max = 9;

sim::Curve& curve_named(std::vector<sim::Curve>& curves, const std::string& name) {
  for (sim::Curve& curve : curves) {
    if (curve.name == name) return curve;
  }
  return curves.emplace_back(sim::Curve{.name = name, .points = {}});
}

}  // namespace

sim::Plot plot_of(const std::vector<Row>& rows, const std::string& title, const std::string& subtitle) {
  sim::Plot plot{.title = title, .subtitle = subtitle, .x_name = "bytes", .x_labels = {}, .x_marks = {}, .curves = {}};
  std::vector<std::int64_t> sizes;
  for (const Row& row : rows) {
    if (row.bench_case.bytes() == 0) continue;
    const auto bytes = static_cast<double>(row.bench_case.bytes());
    sizes.push_back(row.bench_case.bytes());
    for (const Measurement& one : row.measurements) {
      if (!one.trouble.empty()) continue;
      curve_named(plot.curves, one.library).points.push_back({.x = bytes, .y = one.us_median * 1e-6});
    }
    if (row.us_limit > 0) {
      curve_named(plot.curves, "limit").points.push_back({.x = bytes, .y = row.us_limit * 1e-6});
    }
  }
  std::sort(sizes.begin(), sizes.end());
  for (sim::Curve& curve : plot.curves) {
    std::sort(curve.points.begin(), curve.points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
  }
  const std::size_t stride = (sizes.size() + marks_max - 1) / marks_max;
  for (std::size_t i = 0; i < sizes.size(); i += std::max<std::size_t>(stride, 1)) {
    plot.x_marks.push_back(static_cast<double>(sizes[i]));
    plot.x_labels.push_back(format_bytes(sizes[i]));
  }
  return plot;
}

std::string picture_path(const std::string& path, int number) {
  if (number == 1) return path;
  const std::filesystem::path whole(path);
  return (whole.parent_path() / fmt::format("{}-{}{}", whole.stem().string(), number, whole.extension().string()))
      .string();
}

}  // namespace tutti::bench
