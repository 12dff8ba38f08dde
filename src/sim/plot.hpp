// plot.hpp: curves of time over bytes or ranks, as SVG.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tutti::sim {

struct Point {
  double x = 0, y = 0;
  bool ringed = false;  // the one that selection picks
  bool solid = true;    // otherwise it is an estimate
};

struct Curve {
  std::string name;
  std::vector<Point> points;  // by x
};

struct Plot {
  std::string title, subtitle, x_name;
  std::vector<std::string> x_labels;  // one per place where x is marked
  std::vector<double> x_marks;
  std::vector<Curve> curves;
};

/// Both axes logarithmic; y is in seconds.
std::string svg_of(const Plot& plot);

}  // namespace tutti::sim
