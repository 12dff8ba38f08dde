// style.hpp: colour, and columns that line up in a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/environment.hpp"

namespace tutti::cli {

enum class Tone { plain, bold, dim, green, yellow, red, blue, magenta, cyan };

/// Paints text, or leaves it as it is.
class Style {
 public:
  static Style plain() { return Style(Colours::off); }
  static Style coloured() { return Style(Colours::on); }
  /// Colours where a person looks: on a terminal that is not dumb. NO_COLOR and FORCE_COLOR, if not empty, decide first.
  static Style for_output(const Environment& environment, int fd);

  [[nodiscard]] std::string paint(Tone tone, std::string_view text) const;
  [[nodiscard]] bool has_colour() const { return colours_ == Colours::on; }

 private:
  enum class Colours { off, on };
  explicit Style(Colours colours) : colours_(colours) {}
  Colours colours_;
};

/// Columns that UTF-8 text takes in a terminal. All that the tools print is one column wide; colours take none.
std::size_t display_width(std::string_view text);

enum class Side { left, right };
/// With blanks up to `width` columns: `side` is where the text stands.
std::string pad(std::string_view text, std::size_t width, Side side = Side::left);

}  // namespace tutti::cli
