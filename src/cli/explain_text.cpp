// explain_text.cpp: the output of `tutti explain`, as text.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/environment.hpp"
#include "cli/explain.hpp"
#include "cli/text_table.hpp"
#include "plan/catalog.hpp"

namespace tutti::cli {

std::string headline(const Question& question, const Explanation& answer) {
  std::string text(tutti::name_of(question.verb));
  if (question.verb != Verb::barrier) {
    text += fmt::format(" of {} {}", format_bytes(answer.shape.bytes), tutti::name_of(question.dtype));
  }
  text += fmt::format(" on {} rank{}", question.ranks, question.ranks == 1 ? "" : "s");
  const int hosts = answer.shape.topology.nodes;
  if (hosts > 1) text += fmt::format(", {} hosts", hosts);
  if (has_root(question.verb)) text += fmt::format(", root {}", question.root);
  if (question.verb == Verb::permute) text += ", each to the next";
  return text;
}

std::string to_text(const Question& question, const Explanation& answer, const Style& style) {
  std::string text = style.paint(Tone::bold, headline(question, answer)) + '\n';
  text += fmt::format("served by {}\n", answer.served_by);
  text += fmt::format("{}: {}.\n\n", style.paint(Tone::green, name_of(answer.shown)), answer.why);
  TextTable table({{" "},
                   {"algorithm"},
                   {"segment", Side::right},
                   {"time", Side::right},
                   {"rounds", Side::right},
                   {"messages", Side::right},
                   {"sent", Side::right},
                   {"received", Side::right},
                   {"reduced", Side::right}});
  for (const Candidate& candidate : answer.candidates) {
    const bool shown = candidate.choice.algorithm == answer.shown.algorithm;
    const std::int64_t segment = shown ? answer.shown.segment_bytes : candidate.choice.segment_bytes;
    const Cost& cost = candidate.cost;
    table.add({shown ? "▸" : "", std::string(tutti::name_of(candidate.choice.algorithm)),
               segment == 0 ? "–" : format_bytes(segment), seconds_text(cost.time), fmt::format("{}", cost.rounds),
               fmt::format("{}", cost.messages), format_bytes(cost.bytes_sent), format_bytes(cost.bytes_received),
               format_bytes(cost.bytes_reduced)},
              shown ? Tone::green : Tone::plain);
  }
  text += table.text(style);
  text += style.paint(Tone::dim, "Messages and bytes are those of the busiest rank; times are estimated.") + '\n';
  if (!answer.absent.empty()) {
    std::vector<std::string_view> names;
    for (const Algorithm algorithm : answer.absent) names.push_back(tutti::name_of(algorithm));
    text += style.paint(Tone::dim, fmt::format("Not here: {}, which needs several hosts with several ranks.\n",
                                               fmt::join(names, ", ")));
  }
  return text;
}

}  // namespace tutti::cli
