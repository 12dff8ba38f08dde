// picture_svg.cpp: the messages of a call as a drawing to scale.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "cli/explanation.hpp"
#include "cli/picture.hpp"

namespace tutti::cli {

namespace {

constexpr const char* colour_reduced = "#d9680f";  // to be reduced
constexpr const char* colour_kept = "#1f6fb4";     // kept as it is
constexpr const char* colour_work = "#8e3b8a";     // reducing

class Drawing {
 public:
  Drawing(const Timeline& timeline, const SvgTitle& title) : timeline_(timeline), title_(title) {
    column_ = std::clamp(900.0 / timeline.ranks, 26.0, 90.0);
    // Tall enough that one after the other is seen as such, short enough for a page or a few.
    body_ = std::clamp(52.0 * timeline.slots, 220.0, 3200.0);
    width_ = std::max(left_ + column_ * (timeline.ranks - 1) + right_, 560.0);
    height_ = top_ + body_ + bottom_;
    scale_ = body_ / std::max(timeline.seconds, 1e-9);
  }

  std::string draw() {
    open();
    hosts();
    axis();
    for (int rank = 0; rank < timeline_.ranks; ++rank) life_line(rank);
    for (const LocalWork& work : timeline_.reductions) reduction(work);
    for (const Message& message : timeline_.messages) arrow(message);
    legend();
    text_ += "</svg>\n";
    return std::move(text_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  [[nodiscard]] double x(int rank) const { return left_ + column_ * rank; }
  [[nodiscard]] double y(double seconds) const { return top_ + seconds * scale_; }

  void open() {
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" )"
        R"(font-family="Inter, 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif" font-size="12" fill="#222">)",
        width_, height_);
    add(R"(<title>{}, {}</title>)", title_.title, title_.subtitle);
    add("<defs>");
    for (const auto& [name, colour] : {std::pair{"reduced", colour_reduced}, std::pair{"kept", colour_kept}}) {
      add(R"(<marker id="{}" viewBox="0 0 10 10" refX="9.5" refY="5" markerWidth="7" markerHeight="7" orient="auto">)"
          R"(<path d="M0,1 L10,5 L0,9 z" fill="{}"/></marker>)",
          name, colour);
    }
    add("</defs>");
    add(R"(<rect width="100%" height="100%" fill="white"/>)");
    add(R"(<text x="24" y="34" font-size="19" font-weight="600">{}</text>)", title_.title);
    add(R"(<text x="24" y="56" font-size="13" fill="#666">{}</text>)", title_.subtitle);
  }

  // A band behind the ranks of each host.
  void hosts() {
    const auto& node_of = timeline_.node_of;
    for (int first = 0, host = 0; !node_of.empty() && first < timeline_.ranks; ++host) {
      int last = first;
      while (last + 1 < timeline_.ranks && node_of[std::size_t(last) + 1] == node_of[std::size_t(first)]) ++last;
      const double margin = column_ * 0.42;
      add(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="8" fill="{}"/>)", x(first) - margin,
          top_ - 44, x(last) - x(first) + 2 * margin, body_ + 56, host % 2 == 0 ? "#f3f6f9" : "#f9f5ef");
      add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle" font-size="11" fill="#888">host {}</text>)",
          (x(first) + x(last)) / 2, top_ - 30, host);
      first = last + 1;
    }
  }

  // Ticks at 1, 2 or 5 times a power of ten, some 60 pixels apart.
  void axis() {
    const double wanted = 60 / scale_, power = std::pow(10, std::floor(std::log10(wanted)));
    const double step = wanted <= power       ? power
                        : wanted <= 2 * power ? 2 * power
                        : wanted <= 5 * power ? 5 * power
                                              : 10 * power;
    const double right = x(timeline_.ranks - 1) + 14;
    for (int i = 0; i * step <= timeline_.seconds * 1.0001; ++i) {
      add(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#e4e4e4"/>)", left_ - 22, y(i * step), right,
          y(i * step));
      add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end" font-size="11" fill="#888">{}</text>)", left_ - 28,
          y(i * step) + 4, i == 0 ? "0" : seconds_text(i * step));
    }
  }

  void life_line(int rank) {
    add(R"(<line x1="{0:.1f}" y1="{1:.1f}" x2="{0:.1f}" y2="{2:.1f}" stroke="#9aa0a6" stroke-width="1.5"/>)", x(rank),
        top_ - 8, top_ + body_ + 6);
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle" font-weight="600">{}</text>)", x(rank), top_ - 14, rank);
  }

  void reduction(const LocalWork& work) {
    add(R"(<rect x="{:.1f}" y="{:.2f}" width="6" height="{:.2f}" rx="1.5" fill="{}" opacity="0.85"/>)",
        x(work.rank) - 3, y(work.begin), std::max(1.0, (work.end - work.begin) * scale_), colour_work);
  }

  void arrow(const Message& message) {
    const bool right = message.to > message.from;
    const double inset = right ? 3 : -3;
    add(R"~(<line x1="{:.1f}" y1="{:.2f}" x2="{:.1f}" y2="{:.2f}" stroke="{}" stroke-width="1.6"{} marker-end="url(#{})">)~"
        R"(<title>{} to {}: {} bytes, {} to {}</title></line>)",
        x(message.from) + inset, y(message.begin), x(message.to) - inset, y(message.end),
        message.reduced ? colour_reduced : colour_kept, message.between ? R"( stroke-dasharray="7 3")" : "",
        message.reduced ? "reduced" : "kept", message.from, message.to, message.bytes, seconds_text(message.begin),
        seconds_text(message.end));
  }

  void legend() {
    double at = 24;
    const double base = height_ - 24;
    const auto entry = [&](const char* colour, const char* dashes, std::string_view meaning) {
      add(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" stroke-width="3"{}/>)", at, base - 4,
          at + 26, base - 4, colour, dashes);
      add(R"(<text x="{:.1f}" y="{:.1f}" fill="#555">{}</text>)", at + 33, base, meaning);
      at += 33 + 7.0 * static_cast<double>(meaning.size()) + 18;
    };
    const auto any = [&](auto is) { return std::any_of(timeline_.messages.begin(), timeline_.messages.end(), is); };
    if (any([](const Message& m) { return m.reduced; })) entry(colour_reduced, "", "to be reduced");
    if (any([](const Message& m) { return !m.reduced; })) entry(colour_kept, "", "kept as it is");
    if (any([](const Message& m) { return m.between; })) entry("#777", R"( stroke-dasharray="7 3")", "between hosts");
    if (!timeline_.reductions.empty()) entry(colour_work, "", "reducing");
  }

  static constexpr double left_ = 110, right_ = 60, top_ = 128, bottom_ = 64;
  const Timeline& timeline_;
  const SvgTitle& title_;
  double column_ = 0, body_ = 0, width_ = 0, height_ = 0, scale_ = 1;
  std::string text_;
};

}  // namespace

std::string draw_svg(const Timeline& timeline, const SvgTitle& title) {
  if (timeline.ranks > svg_ranks_max || timeline.messages.size() > svg_messages_max) {
    throw InvalidArgument(fmt::format(
        "a drawing of {} ranks and {} messages could not be read; draw at most {} ranks and {} messages: fewer "
        "ranks (-n), fewer bytes (--bytes), or another --algorithm",
        timeline.ranks, timeline.messages.size(), svg_ranks_max, svg_messages_max));
  }
  return Drawing(timeline, title).draw();
}

}  // namespace tutti::cli
