// report_page.cpp: the sections of the report. What matters is in its text; the script only draws the timeline.
// SPDX-License-Identifier: Apache-2.0
#include "watch/report_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "watch/report_style.hpp"
#include "watch/words.hpp"

namespace tutti::watch {
namespace {

using Json = nlohmann::ordered_json;
using record::CallRecord;

constexpr std::size_t drawn_calls_max = 40'000;  // a browser draws them within a second

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

std::string section(std::string_view id, std::string_view title, const std::string& body) {
  return fmt::format("<section aria-labelledby=\"{0}\"><h2 id=\"{0}\">{1}</h2>\n{2}</section>\n", id, title, body);
}

std::string findings_of(const ReportData& data) {
  if (data.findings.empty())
    return "<p>Nothing is the matter: no rank is missing, gone or slow, and all made the same calls.</p>\n";
  std::string list = "<ul class=\"findings\">\n";
  for (const Finding& finding : data.findings)
    list += fmt::format("<li class=\"{0}\"><b>{0}</b>{1}</li>\n", name_of(finding.kind), escaped(finding.text));
  return list + "</ul>\n";
}

std::string standings_of(const Timeline& timeline) {
  std::string text =
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Ranks\"><table><thead><tr><th>rank</th>"
      "<th>host</th><th>process</th><th class=\"n\">calls</th><th>where it was last</th></tr></thead><tbody>\n";
  for (const RankView& rank : timeline.ranks()) {
    const record::Snapshot& s = rank.snapshot;
    std::string where = escaped(say_where(rank));
    if (!s.stack.empty())
      where += fmt::format("<details><summary>its stack</summary><pre>{}</pre></details>", escaped(s.stack));
    text += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
                        s.rank, escaped(s.host), s.process, s.written, where);
  }
  return text + "</tbody></table></div>\n";
}

std::string timeline_of() {
  return R"(<p>Each bar is a call. A dashed red frame: it was still under way. Click the timeline or Tab to it; ← → walk along a rank,
↑ ↓ go to another rank, + − change the scale, 0 shows all.</p>
<div class="bar"><button data-key="ArrowLeft">← call</button><button data-key="ArrowRight">call →</button>
<button data-key="ArrowUp">↑ rank</button><button data-key="ArrowDown">rank ↓</button><button data-key="+">+ closer</button>
<button data-key="-">− farther</button><button data-key="0">all</button></div>
<svg id="timeline" tabindex="0" role="application" aria-label="Timeline of the ranks; arrow keys walk through the calls"></svg>
<div id="picked" role="status" aria-live="polite"></div><div class="key" id="key" aria-label="Verbs"></div>
)";
}

std::string traffic_of(const ReportData& data) {
  constexpr std::size_t ranks_max = 64;
  const std::size_t size = std::min(data.traffic.size(), ranks_max);
  double most = 0;
  for (const auto& row : data.traffic) most = std::max(most, *std::ranges::max_element(row));
  std::string text = "<p>From the rank of the row to the rank of the column.";
  if (data.has_estimates)
    text += " Messages count as they were sent; of collectives, what the verb has to move between two ranks at least.";
  text +=
      "</p>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Traffic between ranks\"><table "
      "class=\"heat\"><thead>"
      "<tr><th scope=\"col\">from ╲ to</th>";
  for (std::size_t to = 0; to < size; ++to) text += fmt::format("<th scope=\"col\">{}</th>", to);
  text += "</tr></thead><tbody>\n";
  for (std::size_t from = 0; from < size; ++from) {
    text += fmt::format("<tr><th scope=\"row\">{}</th>", from);
    for (std::size_t to = 0; to < size; ++to) {
      const double bytes = data.traffic[from][to];
      text += bytes == 0 ? "<td>·</td>"
                         : fmt::format("<td style=\"background:rgba(var(--heat),{:.2f})\">{}</td>",
                                       0.06 + 0.44 * bytes / most, say_bytes(bytes));
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string say_duration(std::int64_t ns) { return ns == 0 ? "at once" : say_time(ns); }

std::string sizes_of(const ReportData& data) {
  std::string text =
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Times\"><table><thead><tr><th>verb</th><th "
      "class=\"n\">up to</th>"
      "<th class=\"n\">calls</th><th class=\"n\">bytes</th><th class=\"n\">median</th><th class=\"n\">longest</th><th "
      "class=\"n\">"
      "together</th><th>how</th></tr></thead><tbody>\n";
  for (const SizeRow& row : data.sizes)
    text += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
        tutti::name_of(row.verb), say_bytes(double(row.bytes_max)), row.calls, say_bytes(double(row.bytes)),
        say_duration(row.median_ns), say_duration(row.worst_ns), say_duration(row.total_ns), escaped(row.how));
  return text +
         "</tbody></table></div>\n<p class=\"soft\">At once: over before anyone had to wait; only traces (tuttirun "
         "--trace) "
         "time these.</p>\n";
}

std::string ranks_of(const ReportData& data) {
  std::string text =
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Stragglers and "
      "overlap\"><table><thead><tr><th>rank</th>"
      "<th class=\"n\">came last</th><th class=\"n\">others waited for it</th><th class=\"n\">in the job</th><th "
      "class=\"n\">in calls</th>"
      "<th class=\"n\">waited</th><th class=\"n\">overlap</th></tr></thead><tbody>\n";
  for (const RankTime& time : data.times) {
    const auto late = std::ranges::find(data.lateness, time.rank, &Lateness::rank);
    const std::string last = late == data.lateness.end() ? "–" : fmt::format("{} of {}", late->times_last, late->calls);
    text += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
        time.rank, last, late == data.lateness.end() ? "–" : say_time(late->late_ns), say_time(time.span_ns),
        say_time(time.in_calls_ns), say_time(time.waited_ns),
        time.overlap < 0 ? "–" : fmt::format("{:.0f} %", 100 * time.overlap));
  }
  return text +
         "</tbody></table></div>\n<p class=\"soft\">Overlap: the part of the time of calls in which the program did "
         "not wait for them, but computed.</p>\n";
}

std::string advice_of(const ReportData& data) {
  if (data.advice.empty()) return "<p>Nothing stands out.</p>\n";
  std::string text = "<ul>\n";
  for (const std::string& line : data.advice) text += fmt::format("<li>{}</li>\n", escaped(line));
  return text + "</ul>\n";
}

std::string clocks_of(const Timeline& timeline) {
  std::string text;
  for (const RankView& rank : timeline.ranks()) {
    if (rank.offset.within < 0)
      text += fmt::format("<p>The clock of rank {} ({}) could not be aligned: it shares no call with rank 0.</p>\n",
                          rank.snapshot.rank, escaped(rank.snapshot.host));
    else if (rank.offset.ns != 0)
      text += fmt::format("<p class=\"soft\">The clock of rank {} ({}) was moved by {}, right to within {}.</p>\n",
                          rank.snapshot.rank, escaped(rank.snapshot.host), say_time(rank.offset.ns),
                          say_time(rank.offset.within));
  }
  return text;
}

// In a script element only the end of one is special.
std::string drawing_of(const Timeline& timeline) {
  const std::int64_t zero = timeline.begin_ns();
  std::map<Verb, int> verbs;
  Json names = Json::array(), ranks = Json::array(), arrows = Json::array();
  std::map<int, int> row_of;
  const std::size_t of_a_rank = std::max<std::size_t>(drawn_calls_max / timeline.ranks().size(), 1);  // the latest
  for (const RankView& rank : timeline.ranks()) {
    Json calls = Json::array();
    const auto& all = rank.snapshot.calls;
    for (std::size_t i = all.size() > of_a_rank ? all.size() - of_a_rank : 0; i < all.size(); ++i) {
      const CallRecord& call = all[i];
      const auto [verb, is_new] = verbs.try_emplace(call.verb, static_cast<int>(verbs.size()));
      if (is_new) names.push_back(tutti::name_of(call.verb));
      calls.push_back({verb->second, call.started_ns - zero, Timeline::end_of(rank, call) - zero,
                       record::name_of(call.state), describe(call), call.site, call.how});
    }
    row_of[rank.snapshot.rank] = static_cast<int>(ranks.size());
    ranks.push_back({{"rank", rank.snapshot.rank}, {"calls", std::move(calls)}});
  }
  for (const Arrow& arrow : timeline.arrows()) {
    if (arrows.size() < drawn_calls_max)
      arrows.push_back({row_of[arrow.from], arrow.sent->started_ns - zero, row_of[arrow.to],
                        std::max(arrow.received->ended_ns, arrow.received->started_ns) - zero});
  }
  const Json all{{"span", timeline.end_ns() - zero}, {"verbs", names}, {"ranks", ranks}, {"arrows", arrows}};
  std::string text = all.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;) text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace

std::string to_page(const Timeline& timeline, const ReportData& data) {
  std::size_t calls = 0;
  for (const RankView& rank : timeline.ranks()) calls += rank.snapshot.calls.size();
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\"><title>Tutti report: job {}</title><style>{}</style></head><body>\n<a class=\"skip\" "
      "href=\"#findings\">To what is the matter</a><main>\n<h1>Job {}</h1>\n<p class=\"soft\">{} of {} ranks, {} calls "
      "on "
      "record, {}.</p>\n",
      escaped(timeline.job()), report_style, escaped(timeline.job()), timeline.ranks().size(), timeline.size(), calls,
      say_time(timeline.end_ns() - timeline.begin_ns()));
  page += section("findings", "What is the matter", findings_of(data));
  page += section("try", "What to try", advice_of(data));
  page += section("ranks", "Ranks", standings_of(timeline));
  page += section("time", "Timeline", timeline_of() + clocks_of(timeline));
  page += section("late", "Stragglers and overlap", ranks_of(data));
  page += section("traffic", "Traffic between ranks", traffic_of(data));
  page += section("verbs", "Time per verb and size", sizes_of(data));
  page +=
      fmt::format("</main><script type=\"application/json\" id=\"data\">{}</script><script>{}</script></body></html>\n",
                  drawing_of(timeline), report_script);
  return page;
}

}  // namespace tutti::watch
