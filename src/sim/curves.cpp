// curves.cpp: simulated times as a picture.
// SPDX-License-Identifier: Apache-2.0
#include "sim/curves.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "sim/report.hpp"

namespace tutti::sim {

Plot plot_of(const Experiment& experiment, const std::vector<std::vector<Trial>>& calls) {
  const bool over_ranks = calls.front().front().ranks != calls.back().front().ranks;
  const Trial& last = calls.back().front();
  Plot plot;
  plot.title = fmt::format("{}: simulated time", name_of(experiment.verb));
  plot.x_name = over_ranks ? "ranks" : "bytes";
  plot.subtitle = over_ranks ? fmt::format("{}, {} ranks per host; {}", bytes_text(last.bytes),
                                           experiment.cluster.ranks_per_host, describe_figures(experiment.cluster))
                             : describe(experiment.cluster);
  const std::size_t every = (calls.size() + 11) / 12;  // more marks than that would not fit
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::vector<Trial>& trials = calls[i];
    const double x = static_cast<double>(over_ranks ? trials[0].ranks : std::max<std::int64_t>(1, trials[0].bytes));
    if (i % every == 0) {
      plot.x_marks.push_back(x);
      plot.x_labels.push_back(over_ranks ? std::to_string(trials[0].ranks) : bytes_text(trials[0].bytes));
    }
    for (const Trial& trial : trials) {
      const std::string name(name_of(trial.choice.algorithm));
      auto curve = std::find_if(plot.curves.begin(), plot.curves.end(), [&](const Curve& c) { return c.name == name; });
      if (curve == plot.curves.end()) curve = plot.curves.insert(curve, {.name = name, .points = {}});
      curve->points.push_back(
          {.x = x, .y = std::max(trial.outcome.seconds, 1e-9), .ringed = trial.selected, .solid = trial.simulated});
    }
  }
  std::sort(plot.curves.begin(), plot.curves.end(), [](const Curve& a, const Curve& b) { return a.name < b.name; });
  return plot;
}

}  // namespace tutti::sim
