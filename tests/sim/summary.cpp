// summary.cpp: the results of many seeds, as a table.
// SPDX-License-Identifier: Apache-2.0
#include "summary.hpp"

#include <fmt/format.h>

#include <numeric>

namespace tutti::sim {

void Summary::add(const Scenario& scenario, const History& history, bool holds) {
  Row& row = rows_[std::string(kind_of(scenario))];
  ++row.seeds;
  row.failed += holds ? 0 : 1;
  for (const Record& record : history.calls) ++row.calls[static_cast<std::size_t>(record.outcome)];
  virtual_seconds_ += std::chrono::duration<double>(history.elapsed).count();
}

Summary::Row Summary::total() const {
  Row sum;
  for (const auto& [kind, row] : rows_) {
    sum.seeds += row.seeds;
    sum.failed += row.failed;
    for (std::size_t i = 0; i < row.calls.size(); ++i) sum.calls[i] += row.calls[i];
  }
  return sum;
}

std::int64_t Summary::seeds() const { return total().seeds; }
std::int64_t Summary::failed() const { return total().failed; }

std::int64_t Summary::calls() const {
  const Row sum = total();
  return std::accumulate(sum.calls.begin(), sum.calls.end(), std::int64_t{0});
}

std::string Summary::table() const {
  std::string text = fmt::format("{:<12} {:>6} {:>8}", "trouble", "seeds", "calls");
  const auto each_outcome = [](auto&& use) {
    for (int i = 1; i < outcome_count; ++i) use(static_cast<std::size_t>(i));
    use(0);  // those that never ended: their rank was killed
  };
  each_outcome(
      [&](std::size_t i) { text += fmt::format(" {:>8}", i == 0 ? "killed" : name_of(static_cast<Outcome>(i))); });
  text += fmt::format(" {:>9}\n", "violated");
  const auto add_row = [&](std::string_view kind, const Row& row) {
    text += fmt::format("{:<12} {:>6} {:>8}", kind, row.seeds,
                        std::accumulate(row.calls.begin(), row.calls.end(), std::int64_t{0}));
    each_outcome([&](std::size_t i) { text += fmt::format(" {:>8}", row.calls[i]); });
    text += fmt::format(" {:>9}\n", row.failed);
  };
  for (const auto& [kind, row] : rows_) add_row(kind, row);
  add_row("all", total());
  return text;
}

}  // namespace tutti::sim
