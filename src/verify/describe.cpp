// describe.cpp: the tables of docs/algorithms.md.
// SPDX-License-Identifier: Apache-2.0
#include "verify/describe.hpp"

#include <fmt/format.h>

#include "plan/catalog.hpp"

namespace tutti {

namespace {

constexpr std::int64_t verbs_with_plans = static_cast<std::int64_t>(Verb::send);

std::string size_name(std::int64_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{} MiB", bytes >> 20);
  return bytes >= 1 << 10 ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} B", bytes);
}

// Of the array, in hundredths.
std::string share(std::int64_t bytes, std::int64_t of) {
  return fmt::format("{:.2f} n", static_cast<double>(bytes) / static_cast<double>(of));
}

std::string choice_name(const Choice& choice) {
  if (choice.segment_bytes == 0) return std::string(name_of(choice.algorithm));
  return fmt::format("{} / {}", name_of(choice.algorithm), size_name(choice.segment_bytes));
}

}  // namespace

std::string cost_table() {
  constexpr std::int64_t n = 8 * 13 * 1024;  // divides by both numbers of ranks
  std::string text =
      "| verb | algorithm | rounds, p = 8 | sent | received | reduced | rounds, p = 13 | sent | received | reduced |\n"
      "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const CatalogRow& row : catalog()) {
    if (row.algorithm == Algorithm::hierarchical) continue;
    text += fmt::format("| {} | {}{} |", name_of(row.verb), name_of(row.algorithm), row.segments ? " ⫼" : "");
    for (const int size : {8, 13}) {
      const Shape shape{.verb = row.verb, .bytes = n, .uneven = false, .topology = Topology::on_one_node(size)};
      const Cost cost = cost_of(row, shape, 0, {});
      text += fmt::format(" {} | {} | {} | {} |", cost.rounds, share(cost.bytes_sent, n), share(cost.bytes_received, n),
                          share(cost.bytes_reduced, n));
    }
    text += '\n';
  }
  return text;
}

std::string selection_table(const Table& table) {
  struct Place {
    const char* name;
    Topology topology;
  };
  const Place places[] = {{"4 ranks", Topology::on_one_node(4)},
                          {"16 ranks", Topology::on_one_node(16)},
                          {"4 nodes × 8", {.size = 32, .nodes = 4, .local_min = 8, .local_max = 8}}};
  std::string text = "| verb | bytes | 4 ranks | 16 ranks | 4 nodes × 8 |\n|---|---:|---|---|---|\n";
  for (std::int64_t verb = 0; verb < verbs_with_plans; ++verb) {
    for (const std::int64_t bytes : {64, 4 << 10, 256 << 10, 4 << 20, 256 << 20}) {
      const bool barrier = static_cast<Verb>(verb) == Verb::barrier;
      text += fmt::format("| {} | {} |", name_of(static_cast<Verb>(verb)), barrier ? "—" : size_name(bytes));
      for (const Place& place : places) {
        const Shape shape{.verb = static_cast<Verb>(verb), .bytes = bytes, .uneven = false, .topology = place.topology};
        text += fmt::format(" {} |", choice_name(select(shape, table)));
      }
      text += '\n';
      if (barrier) break;
    }
  }
  return text;
}

}  // namespace tutti
