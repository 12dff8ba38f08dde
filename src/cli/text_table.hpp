// text_table.hpp: rows of cells as aligned text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/style.hpp"

namespace tutti::cli {

class TextTable {
 public:
  struct Column {
    std::string title;
    Side side = Side::left;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// As many cells as there are columns. The tone is that of the whole row.
  void add(std::vector<std::string> cells, Tone tone = Tone::plain);

  /// Titles dimmed, two blanks between columns, none at the end of a line; each line starts with `indent`.
  [[nodiscard]] std::string text(const Style& style, std::string_view indent = "") const;

 private:
  struct Row {
    std::vector<std::string> cells;
    Tone tone;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace tutti::cli
