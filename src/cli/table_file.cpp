// table_file.cpp: the table that TUTTI_TABLE names.
// SPDX-License-Identifier: Apache-2.0
#include "cli/table_file.hpp"

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "cli/files.hpp"

namespace tutti::cli {

Table read_table(const Environment& environment) {
  const auto path = environment.get("TUTTI_TABLE");
  if (!path) return {};
  const auto text = read_text(*path);
  if (!text) throw InvalidArgument(fmt::format("TUTTI_TABLE={}: the file cannot be read", *path));
  try {
    return table_from_text(*text);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("TUTTI_TABLE={}: {}", *path, error.what()));
  }
}

}  // namespace tutti::cli
