// report.cpp: results of simulations, as tables and as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "sim/report.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

namespace tutti::sim {

namespace {

// Columns as wide as their widest cell; the first one flush left.
class Grid {
 public:
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] std::string text() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
    }
    std::string text;
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string gap(widths[i] - width_of(row[i]), ' ');
        line += i == 0 ? row[i] + gap : fmt::format("  {}{}", gap, row[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  // Characters, not bytes: µ is two bytes long.
  static std::size_t width_of(const std::string& cell) {
    return static_cast<std::size_t>(std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  }
  std::vector<std::vector<std::string>> rows_;
};

std::string loss_text(const Experiment& experiment, const Spread& loss) {
  return fmt::format(
      "\nRank {} is dead{}: every survivor's call fails and names it.\n"
      "  {:>8}  the first linked rank notices\n  {:>8}  the lowest living rank has decided\n"
      "  {:>8}  the last survivor knows\n",
      experiment.cluster.dead, experiment.silent_death ? " with its host" : "", duration_text(loss.noticed),
      duration_text(loss.decided), duration_text(loss.everyone));
}

std::string note_of(const Trial& trial) {
  std::string note = trial.selected ? "selected" : "";
  if (!trial.simulated) note += note.empty() ? "closed form" : ", closed form";
  return note;
}

}  // namespace

std::string duration_text(double seconds) {
  static constexpr std::array<std::pair<double, const char*>, 4> units{
      {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}};
  for (const auto& [unit, name] : units) {
    if (seconds < 0.9995 * unit && unit > 1e-9) continue;
    const double value = seconds / unit;
    return fmt::format("{:.{}f} {}", value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, name);
  }
  return "0 s";
}

std::string bytes_text(std::int64_t bytes) {
  static constexpr std::array<const char*, 4> units{"B", "KiB", "MiB", "GiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value == static_cast<double>(static_cast<std::int64_t>(value)) ? 0 : 1,
                     units[unit]);
}

std::string choice_text(const Choice& choice) {
  return choice.segment_bytes == 0
             ? std::string(name_of(choice.algorithm))
             : fmt::format("{} / {}", name_of(choice.algorithm), bytes_text(choice.segment_bytes));
}

std::string table_of(const Experiment& experiment, const std::vector<Trial>& trials) {
  const bool with_end = experiment.cluster.dead >= 0;
  Grid grid;
  grid.add({"algorithm", with_end ? "would end" : "time", "steps", "bytes/rank", "messages/rank", "messages", ""});
  if (with_end) {
    Grid ends;
    ends.add({"algorithm", "ranks that still end", "the last after", ""});
    for (const Trial& trial : trials)
      ends.add({choice_text(trial.choice), trial.simulated ? std::to_string(trial.outcome.ended) : "?",
                trial.outcome.ended > 0 ? duration_text(trial.outcome.seconds) : "never", note_of(trial)});
    return describe(experiment.cluster) + "\n\n" + ends.text() +
           (trials.empty() || !trials[0].loss ? "" : loss_text(experiment, *trials[0].loss));
  }
  for (const Trial& trial : trials) {
    const Outcome& outcome = trial.outcome;
    grid.add({choice_text(trial.choice), duration_text(outcome.seconds), std::to_string(outcome.rounds),
              bytes_text(outcome.rank_bytes), std::to_string(outcome.rank_messages), std::to_string(outcome.messages),
              note_of(trial)});
  }
  return fmt::format("{}, {}\n{}\n\n{}", name_of(experiment.verb), bytes_text(experiment.bytes),
                     describe(experiment.cluster), grid.text());
}

std::string table_of(const std::vector<std::vector<Trial>>& calls) {
  std::vector<Algorithm> columns;
  for (const auto& trials : calls) {
    for (const Trial& trial : trials) {
      if (std::find(columns.begin(), columns.end(), trial.choice.algorithm) == columns.end())
        columns.push_back(trial.choice.algorithm);
    }
  }
  std::sort(columns.begin(), columns.end());
  Grid grid;
  std::vector<std::string> head{"ranks", "bytes"};
  for (const Algorithm column : columns) head.push_back(std::string(name_of(column)) + "  ");
  grid.add(head);
  bool closed = false;
  for (const auto& trials : calls) {
    if (trials.empty()) continue;
    std::vector<std::string> row{std::to_string(trials[0].ranks), bytes_text(trials[0].bytes)};
    for (const Algorithm column : columns) {
      const auto found = std::find_if(trials.begin(), trials.end(),
                                      [&](const Trial& trial) { return trial.choice.algorithm == column; });
      if (found == trials.end()) {
        row.emplace_back("  ");
        continue;
      }
      closed = closed || !found->simulated;
      row.push_back(fmt::format("{}{}{}{}", found->simulated ? "" : "~", duration_text(found->outcome.seconds),
                                found == trials.begin() ? "*" : " ", found->selected ? "<" : " "));
    }
    grid.add(row);
  }
  return grid.text() + "\n* the fastest   < the one that is selected" +
         (closed ? "   ~ by the closed form: too many messages to simulate" : "") + "\n";
}

std::string json_of(const Experiment& experiment, const Trial& trial) {
  const Outcome& outcome = trial.outcome;
  std::string text = fmt::format(
      R"({{"verb": "{}", "algorithm": "{}", "segment_bytes": {}, "ranks": {}, "hosts": {}, "bytes": {}, "seconds": {:.9g}, )"
      R"("steps": {}, "rank_bytes": {}, "rank_messages": {}, "messages": {}, "selected": {}, "simulated": {})",
      name_of(experiment.verb), name_of(trial.choice.algorithm), trial.choice.segment_bytes, trial.ranks,
      experiment.cluster.hosts(), trial.bytes, outcome.seconds, outcome.rounds, outcome.rank_bytes,
      outcome.rank_messages, outcome.messages, trial.selected, trial.simulated);
  if (trial.loss) {
    text += fmt::format(R"(, "dead": {}, "ranks_that_end": {}, "noticed_seconds": {:.9g}, "decided_seconds": {:.9g}, )"
                        R"("everyone_knows_seconds": {:.9g})",
                        experiment.cluster.dead, outcome.ended, trial.loss->noticed, trial.loss->decided,
                        trial.loss->everyone);
  }
  return text + "}";
}

}  // namespace tutti::sim
