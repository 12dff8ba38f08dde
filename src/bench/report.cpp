// report.cpp: results as a table in the manner of nccl-tests, and as JSON lines.
// SPDX-License-Identifier: Apache-2.0
#include "bench/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/environment.hpp"
#include "bench/statistics.hpp"

namespace tutti::bench {

namespace {

/// Three to four digits, however large the value, so that a column can be read.
std::string time_text(double us) {
  if (us < 10) return fmt::format("{:.3f}", us);
  return us < 100 ? fmt::format("{:.2f}", us) : fmt::format("{:.1f}", us);
}

std::string ratio_text(double ratio) {
  return ratio < 100 ? fmt::format("{:.2f}x", ratio) : fmt::format("{:.0f}x", ratio);
}

std::string peer_columns(const Row& row, const Measurement& ours) {
  const Measurement* peer = best_peer(row);
  if (peer == nullptr) return fmt::format("  {:<19} {:>10} {:>7}", "-", "-", "-");
  return fmt::format("  {:<19} {:>10} {:>7}", fmt::format("{} {}", peer->library, peer->version),
                     time_text(peer->us_median), ratio_text(peer->us_median / ours.us_median));
}

std::string limit_columns(const Row& row, const Measurement& ours) {
  if (row.us_limit <= 0) return fmt::format(" {:>10} {:>6}", "-", "-");
  return fmt::format(" {:>10} {:>5.0f}%", time_text(row.us_limit), 100 * row.us_limit / ours.us_median);
}

struct Ratios {
  std::vector<double> all{};
  double lowest = 0;
  BenchCase lowest_at{};
  std::int64_t wrong = 0;
};

std::string ratio_line(const std::string& library, const Ratios& ratios) {
  if (ratios.all.empty()) return "";
  return fmt::format("# {}: {} as fast as the best peer in geometric mean of {} sizes, at least {} (at {})\n", library,
                     ratio_text(geometric_mean(ratios.all)), ratios.all.size(), ratio_text(ratios.lowest),
                     format_bytes(ratios.lowest_at.bytes()));
}

}  // namespace

double bus_factor(Verb verb, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (verb) {
    case Verb::all_reduce: return 2 * others;
    case Verb::all_gather:
    case Verb::gather:
    case Verb::reduce_scatter:
    case Verb::scatter:
    case Verb::all_to_all: return others;
    default: return 1;
  }
}

double algorithm_bandwidth(const BenchCase& bench_case, double us) {
  return static_cast<double>(bench_case.bytes()) / us / 1e3;
}

std::string table_head(const TableShape& shape) {
  std::string head = fmt::format("#{:>9} {:>10}", "bytes", "count");
  std::string units = fmt::format("#{:>9} {:>10}", "", "");
  const auto add = [&](std::string_view name, std::string_view unit, int width) {
    head += fmt::format(" {:>{}}", name, width);
    units += fmt::format(" {:>{}}", unit, width);
  };
  if (shape.names_library) add("library", "", 14);
  add("median", "us", 10);
  add("p99", "us", 10);
  add("algbw", "GB/s", 8);
  add("busbw", "GB/s", 8);
  add("#wrong", "", 7);
  if (shape.has_peers) {
    add(" best peer          ", "", 20);
    add("median", "us", 10);
    add("ratio", "", 7);
  }
  if (shape.has_limits) {
    add("limit", "us", 10);
    add("close", "", 6);
  }
  return head + "\n" + units + "\n";
}

std::string table_lines(const Row& row, const TableShape& shape) {
  std::string text;
  for (const Measurement& ours : row.measurements) {
    if (ours.is_peer) continue;
    const double bandwidth = algorithm_bandwidth(row.bench_case, ours.us_median);
    text += fmt::format("{:>10} {:>10}", row.bench_case.bytes(), row.bench_case.count);
    if (shape.names_library) text += fmt::format(" {:>14}", ours.library);
    text += fmt::format(" {:>10} {:>10} {:>8.2f} {:>8.2f} {:>7}", time_text(ours.us_median), time_text(ours.us_p99),
                        bandwidth, bandwidth * bus_factor(row.bench_case.verb, row.ranks), ours.wrong);
    if (shape.has_peers) text += peer_columns(row, ours);
    if (shape.has_limits) text += limit_columns(row, ours);
    text += '\n';
  }
  return text;
}

std::string table_foot(const std::vector<Row>& rows) {
  std::map<std::string, Ratios> by_library;
  for (const Row& row : rows) {
    const Measurement* peer = best_peer(row);
    for (const Measurement& one : row.measurements) {
      Ratios& ratios = by_library[one.library];
      ratios.wrong += one.wrong;
      if (one.is_peer || peer == nullptr) continue;
      const double ratio = peer->us_median / one.us_median;
      if (ratios.all.empty() || ratio < ratios.lowest) {
        ratios.lowest = ratio;
        ratios.lowest_at = row.bench_case;
      }
      ratios.all.push_back(ratio);
    }
  }
  std::string text;
  for (const auto& [library, ratios] : by_library) {
    text += ratio_line(library, ratios);
    if (ratios.wrong > 0) text += fmt::format("# {}: {} elements are WRONG\n", library, ratios.wrong);
  }
  return text;
}

std::string json_lines(const Row& row) {
  std::string text;
  for (const Measurement& one : row.measurements) {
    if (!one.trouble.empty()) continue;
    const double bandwidth = algorithm_bandwidth(row.bench_case, one.us_median);
    text += fmt::format(
        "{{\"verb\": \"{}\", \"dtype\": \"{}\", \"bytes\": {}, \"ranks\": {}, \"library\": \"{}\", \"us_median\": "
        "{:.4f}, "
        "\"us_p99\": {:.4f}, \"algbw_GBps\": {:.4f}, \"busbw_GBps\": {:.4f}, \"in_place\": {}, \"memory\": \"{}\", "
        "\"fresh\": {}, \"version\": \"{}\", \"wrong\": {}}}\n",
        bench_name_of(row.bench_case.bench_verb()), tutti::name_of(row.bench_case.dtype), row.bench_case.bytes(),
        row.ranks, one.library, one.us_median, one.us_p99, bandwidth,
        bandwidth * bus_factor(row.bench_case.verb, row.ranks), row.bench_case.in_place, name_of(row.bench_case.memory),
        !row.bench_case.is_stale, one.version, one.wrong);
  }
  return text;
}

}  // namespace tutti::bench
