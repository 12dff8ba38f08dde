// metrics.cpp: the text format of Prometheus, version 0.0.4.
// SPDX-License-Identifier: Apache-2.0
#include "watch/metrics.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>

namespace tutti::watch {
namespace {

std::string quoted_label(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + '"';
}

struct Metric {
  std::string_view name, help;
  double (*value)(const record::VerbCount&);
};

constexpr std::array<Metric, 5> metrics = {{
    {"tutti_calls_total", "Calls that were begun.", [](const record::VerbCount& c) { return double(c.calls); }},
    {"tutti_bytes_total", "Bytes of their arrays, of each call the larger of input and output.",
     [](const record::VerbCount& c) { return double(c.bytes); }},
    {"tutti_failed_calls_total", "Calls that failed after they had begun.",
     [](const record::VerbCount& c) { return double(c.failed); }},
    {"tutti_call_seconds_total", "From beginning to end of calls that were not over at once.",
     [](const record::VerbCount& c) { return double(c.busy_ns) * 1e-9; }},
    {"tutti_waiting_seconds_total", "For which threads of the program stood in calls and in waits.",
     [](const record::VerbCount& c) { return double(c.waited_ns) * 1e-9; }},
}};

void add_head(std::string& text, std::string_view name, std::string_view help, std::string_view type) {
  text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

std::string labels_of(const record::Snapshot& rank) {
  return fmt::format("job={},rank=\"{}\",host={}", quoted_label(rank.job), rank.rank, quoted_label(rank.host));
}

}  // namespace

// Groups of the same members are one to who looks; a series must not come twice.
std::string to_prometheus(std::span<const record::Snapshot> ranks) {
  std::string text;
  for (const Metric& metric : metrics) {
    add_head(text, metric.name, metric.help, "counter");
    for (const record::Snapshot& rank : ranks) {
      std::map<std::pair<std::string, Verb>, double> values;
      for (const record::GroupRecord& group : rank.groups) {
        for (const record::VerbCount& count : group.counts) values[{group.members, count.verb}] += metric.value(count);
      }
      for (const auto& [key, value] : values) {
        text += fmt::format("{}{{{},group={},verb={}}} {}\n", metric.name, labels_of(rank), quoted_label(key.first),
                            quoted_label(tutti::name_of(key.second)), value);
      }
    }
  }
  add_head(text, "tutti_rank_stalled", "1 while a call of the rank has waited for more than 100 ms.", "gauge");
  for (const record::Snapshot& rank : ranks)
    text += fmt::format("tutti_rank_stalled{{{}}} {}\n", labels_of(rank), rank.stall.number != 0 ? 1 : 0);
  add_head(text, "tutti_rank_joined", "1 while the rank is part of its job.", "gauge");
  for (const record::Snapshot& rank : ranks)
    text += fmt::format("tutti_rank_joined{{{}}} {}\n", labels_of(rank), rank.life == record::Life::joined ? 1 : 0);
  return text;
}

}  // namespace tutti::watch
