// dry_run.cpp: --dry-run.
// SPDX-License-Identifier: Apache-2.0
#include "launch/dry_run.hpp"

#include <fmt/format.h>

#include <string_view>

#include "launch/cores.hpp"

namespace tutti::launch {

std::string quoted(const std::string& word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string describe_start(const Program& program, const Placement& placement, const Variables& common,
                           const std::vector<cpu_set_t>& processors) {
  std::string text = fmt::format("{} rank{} on this node, nothing was started\n\nprogram:", placement.ranks_here,
                                 placement.ranks_here == 1 ? "" : "s");
  text += fmt::format(" {}", quoted(program.path));
  for (std::size_t i = 1; i < program.words.size(); ++i) text += fmt::format(" {}", quoted(program.words[i]));
  text += "\n\nfor all ranks:\n";
  for (const auto& [name, value] : common)
    text += fmt::format("  {}={}\n", name, name == "TUTTI_SECRET" ? "(64 hexadecimal digits)" : quoted(value));
  text += "\nfor each rank:\n";
  for (int rank = 0; rank < placement.ranks_here; ++rank) {
    text += " ";
    for (const auto& [name, value] : own_variables(placement, rank)) text += fmt::format(" {}={}", name, value);
    if (!processors.empty())
      text += fmt::format("  processors {}", describe(processors[static_cast<std::size_t>(rank)]));
    text += "\n";
  }
  return text;
}

}  // namespace tutti::launch
