// text_table.cpp: rows of cells as aligned text.
// SPDX-License-Identifier: Apache-2.0
#include "cli/text_table.hpp"

#include <algorithm>

namespace tutti::cli {

void TextTable::add(std::vector<std::string> cells, Tone tone) {
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), tone});
}

std::string TextTable::text(const Style& style, std::string_view indent) const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(display_width(column.title));
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], display_width(row.cells[i]));
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells, Tone tone) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += "  ";
      line += pad(cells[i], widths[i], columns_[i].side);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += std::string(indent) + style.paint(tone, line) + '\n';
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  add_line(titles, Tone::dim);
  for (const Row& row : rows_) add_line(row.cells, row.tone);
  return text;
}

}  // namespace tutti::cli
