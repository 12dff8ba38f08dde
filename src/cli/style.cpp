// style.cpp: colour, and columns that line up in a terminal.
// SPDX-License-Identifier: Apache-2.0
#include "cli/style.hpp"

#include <unistd.h>

#include <fmt/format.h>

namespace tutti::cli {

Style Style::for_output(const Environment& environment, int fd) {
  const auto set = [&](std::string_view name) { return !environment.get(name).value_or("").empty(); };
  if (set("NO_COLOR")) return plain();
  if (set("FORCE_COLOR")) return coloured();
  const bool terminal = isatty(fd) == 1 && environment.get("TERM").value_or("dumb") != "dumb";
  return terminal ? coloured() : plain();
}

std::string Style::paint(Tone tone, std::string_view text) const {
  constexpr std::string_view codes[] = {"", "1", "2", "32", "33", "31", "34", "35", "36"};
  const std::string_view code = codes[static_cast<int>(tone)];
  if (!has_colour() || code.empty() || text.empty()) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  bool escape = false;
  for (const char c : text) {
    if (c == '\033') escape = true;
    else if (escape) escape = c != 'm';
    else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++width;  // bytes 10xxxxxx continue a character
  }
  return width;
}

std::string pad(std::string_view text, std::size_t width, Side side) {
  const std::size_t used = display_width(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return side == Side::left ? std::string(text) + blanks : blanks + std::string(text);
}

}  // namespace tutti::cli
