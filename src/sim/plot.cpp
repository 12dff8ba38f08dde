// plot.cpp: curves as SVG.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "sim/report.hpp"

namespace tutti::sim {

namespace {

constexpr double width = 960, height = 560, left = 84, right = 778, top = 92, bottom = 488;

// Told apart by most kinds of colour vision (Okabe and Ito), the yellow darkened.
constexpr std::array<const char*, 8> colours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                             "#b8860b", "#56b4e9", "#3b3b3b", "#8b5cf6"};

constexpr const char* style = R"(<style>
text { font-family: "Inter", "Helvetica Neue", Helvetica, Arial, sans-serif; fill: #4b5563; font-size: 12.5px }
.title { font-size: 19px; font-weight: 600; fill: #111827 } .subtitle { font-size: 13px; fill: #6b7280 }
.grid { stroke: #e5e7eb; stroke-width: 1 } .axis { stroke: #9ca3af; stroke-width: 1 }
.name { font-size: 13px; font-weight: 600 }
</style>
)";

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&') safe += "&amp;";
    else if (c == '<') safe += "&lt;";
    else if (c == '>') safe += "&gt;";
    else safe += c;
  }
  return safe;
}

// From values to places on the page.
class Axes {
 public:
  explicit Axes(const Plot& plot) {
    for (const Curve& curve : plot.curves) {
      for (const Point& point : curve.points) {
        x_min_ = std::min(x_min_, std::log(point.x));
        x_max_ = std::max(x_max_, std::log(point.x));
        y_min_ = std::min(y_min_, std::log10(point.y));
        y_max_ = std::max(y_max_, std::log10(point.y));
      }
    }
    if (x_max_ <= x_min_) x_max_ = x_min_ + 1;
    const double margin = std::max(0.06 * (y_max_ - y_min_), 0.05);
    y_min_ -= margin;
    y_max_ += margin;
  }
  [[nodiscard]] double x(double value) const {
    return left + 16 + (right - left - 32) * (std::log(value) - x_min_) / (x_max_ - x_min_);
  }
  [[nodiscard]] double y(double value) const {
    return bottom - (bottom - top) * (std::log10(value) - y_min_) / (y_max_ - y_min_);
  }
  // 1, 10, 100 …; where there is room also 2 and 5 times these.
  [[nodiscard]] std::vector<double> y_marks() const {
    std::vector<double> marks;
    const bool finer = y_max_ - y_min_ < 4;
    for (int exponent = static_cast<int>(std::floor(y_min_)); exponent <= y_max_; ++exponent) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double mark = digit * std::pow(10.0, exponent);
        if ((digit == 1 || finer) && std::log10(mark) >= y_min_ && std::log10(mark) <= y_max_) marks.push_back(mark);
      }
    }
    return marks;
  }

 private:
  double x_min_ = 1e300, x_max_ = -1e300, y_min_ = 1e300, y_max_ = -1e300;
};

std::string mark_text(double seconds) {
  for (const auto& [unit, name] : {std::pair{1.0, "s"}, std::pair{1e-3, "ms"}, std::pair{1e-6, "µs"}}) {
    if (seconds >= 0.999 * unit) return fmt::format("{:.0f} {}", seconds / unit, name);
  }
  return fmt::format("{:.0f} ns", seconds * 1e9);
}

std::string frame_of(const Plot& plot, const Axes& axes) {
  std::string text;
  for (const double mark : axes.y_marks()) {
    text += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", left, right, axes.y(mark),
                        axes.y(mark));
    text += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", left - 10, axes.y(mark) + 4.5,
                        mark_text(mark));
  }
  for (std::size_t i = 0; i < plot.x_marks.size(); ++i) {
    const double x = axes.x(plot.x_marks[i]);
    text += fmt::format(R"(<line class="grid" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>)", x, x, top, bottom);
    text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x, bottom + 20,
                        escaped(plot.x_labels[i]));
  }
  text += fmt::format("<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>\n", left, right, bottom, bottom);
  text += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (left + right) / 2, bottom + 44,
                      escaped(plot.x_name));
  return text;
}

std::string curve_of(const Curve& curve, const Axes& axes, const char* colour) {
  std::string path, marks;
  for (const Point& point : curve.points) {
    const double x = axes.x(point.x), y = axes.y(point.y);
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : " L", x, y);
    if (point.ringed)
      marks += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="7" fill="none" stroke="{}" stroke-width="1.6"/>)", x,
                           y, colour);
    marks +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.4\" fill=\"{}\" stroke=\"{}\" stroke-width=\"1.6\"/>\n",
                    x, y, point.solid ? colour : "#ffffff", colour);
  }
  return fmt::format(
             "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2.2\" stroke-linejoin=\"round\" "
             "stroke-linecap=\"round\"/>\n",
             path, colour) +
         marks;
}

// Names at the right ends of the curves, moved apart where they would overlap.
std::string names_of(const Plot& plot, const Axes& axes) {
  struct Name {
    std::size_t curve;
    double wanted, y;
  };
  constexpr double line = 18;
  std::vector<Name> names;
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    if (plot.curves[i].points.empty()) continue;
    const double y = axes.y(plot.curves[i].points.back().y);
    names.push_back({i, y, y});
  }
  std::sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.wanted < b.wanted; });
  for (std::size_t i = 1; i < names.size(); ++i) names[i].y = std::max(names[i].y, names[i - 1].y + line);
  if (!names.empty() && names.back().y > bottom) names.back().y = bottom;
  for (std::size_t i = names.size(); i-- > 1;) names[i - 1].y = std::min(names[i - 1].y, names[i].y - line);
  std::string text;
  for (const Name& name : names) {
    const Curve& curve = plot.curves[name.curve];
    const char* colour = colours[name.curve % colours.size()];
    const double end = axes.x(curve.points.back().x);
    text += fmt::format(
        R"(<path d="M{:.1f},{:.1f} L{},{:.1f}" stroke="{}" stroke-width="1" stroke-dasharray="1.5 3" fill="none"/>)",
        end + 9, name.wanted, right + 8, name.y, colour);
    text += fmt::format("<text class=\"name\" x=\"{}\" y=\"{:.1f}\" style=\"fill:{}\">{}</text>\n", right + 13,
                        name.y + 4.5, colour, escaped(curve.name));
  }
  return text;
}

}  // namespace

std::string svg_of(const Plot& plot) {
  const Axes axes(plot);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" role=\"img\">\n",
      width, height, width, height);
  text += fmt::format("<title>{}</title>\n", escaped(plot.title)) + style;
  text += fmt::format("<rect width=\"{}\" height=\"{}\" rx=\"8\" fill=\"#ffffff\"/>\n", width, height);
  text += fmt::format("<text class=\"title\" x=\"{}\" y=\"38\">{}</text>\n", left - 52, escaped(plot.title));
  text += fmt::format("<text class=\"subtitle\" x=\"{}\" y=\"60\">{}</text>\n", left - 52, escaped(plot.subtitle));
  text += frame_of(plot, axes);
  for (std::size_t i = 0; i < plot.curves.size(); ++i)
    text += curve_of(plot.curves[i], axes, colours[i % colours.size()]);
  text += names_of(plot, axes);
  bool ringed = false, open = false;
  for (const Curve& curve : plot.curves) {
    for (const Point& point : curve.points) {
      ringed = ringed || point.ringed;
      open = open || !point.solid;
    }
  }
  std::string key = ringed ? "ringed: what selection picks" : "";
  if (open) key += std::string(key.empty() ? "" : " · ") + "hollow: closed form, too many messages to simulate";
  text += fmt::format("<text class=\"subtitle\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", width - 24,
                      height - 14, key);
  return text + "</svg>\n";
}

}  // namespace tutti::sim
