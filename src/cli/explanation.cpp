// explanation.cpp: which algorithm serves a call, why, and what the others would cost.
// SPDX-License-Identifier: Apache-2.0
#include "cli/explanation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tutti/error.hpp>

#include "base/backend_names.hpp"
#include "base/environment.hpp"
#include "plan/catalog.hpp"

namespace tutti::cli {

namespace {

void check(const Question& question) {
  if (catalog(question.verb).empty()) {
    throw InvalidArgument(fmt::format("{} is a single message: there is no plan to explain", name_of(question.verb)));
  }
  if (!is_backend_name(question.backend)) {
    throw InvalidArgument(
        fmt::format("--backend {}: not a backend; there are {}", question.backend, fmt::join(backend_names, ", ")));
  }
  if (question.ranks < 1) throw InvalidArgument(fmt::format("-n {}: at least one rank is needed", question.ranks));
  if (question.root < 0 || question.root >= question.ranks) {
    throw InvalidArgument(fmt::format("--root {}: the ranks are 0 to {}", question.root, question.ranks - 1));
  }
}

// Rounded up to whole elements, and to whole blocks where each rank has one, so that the call is even.
Spec spec_of(const Question& question) {
  Spec spec{.verb = question.verb, .size = question.ranks, .root = question.root, .node_of = question.node_of};
  if (question.verb == Verb::barrier) return spec;
  const auto element = static_cast<std::int64_t>(size_of(question.dtype));
  const std::int64_t parts = has_blocks(question.verb) ? question.ranks : 1;
  spec.count = question.bytes / element / parts;
  if (spec.count * element * parts < question.bytes) ++spec.count;
  if (question.verb == Verb::permute) {
    for (int rank = 0; rank < question.ranks; ++rank) spec.pairs.emplace_back(rank, (rank + 1) % question.ranks);
  }
  return spec;
}

Shape shape_of(const Question& question, const Spec& spec) {
  const auto element = static_cast<std::int64_t>(size_of(question.dtype));
  return {.verb = question.verb,
          .bytes = spec.count * element * (has_blocks(question.verb) ? question.ranks : 1),
          .uneven = false,
          .topology = Topology::of(question.ranks, question.node_of)};
}

const Candidate* find(const std::vector<Candidate>& all, Algorithm algorithm) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Candidate& c) { return c.choice.algorithm == algorithm; });
  return found == all.end() ? nullptr : &*found;
}

std::string range_text(std::int64_t low, std::int64_t high, std::int64_t none, const std::string& shown_low,
                       const std::string& shown_high) {
  if (high == none) return low <= 1 ? "any" : fmt::format("{} or more", shown_low);
  return fmt::format("{} to {}", shown_low, shown_high);
}

std::string row_text(const TableRow& row) {
  return fmt::format("{}, {} ranks, {} bytes", name_of(row.verb),
                     range_text(row.ranks_min, row.ranks_max, TableRow{}.ranks_max, fmt::format("{}", row.ranks_min),
                                fmt::format("{}", row.ranks_max)),
                     range_text(row.bytes_min, row.bytes_max, TableRow{}.bytes_max, format_bytes(row.bytes_min),
                                format_bytes(row.bytes_max)));
}

// The row of the table by which `choice` was selected: the first that fits, as select() does it.
const TableRow* deciding_row(const Shape& shape, const Table& table, const Choice& choice) {
  for (const TableRow& row : table.rows) {
    const Table alone{.model = table.model, .rows = {row}};
    const bool fits = row.verb == shape.verb && shape.topology.size >= row.ranks_min &&
                      shape.topology.size <= row.ranks_max && shape.bytes >= row.bytes_min &&
                      shape.bytes <= row.bytes_max;
    if (fits && row.choice == choice && select(shape, alone) == choice) return &row;
  }
  return nullptr;
}

std::string times_text(double factor) { return fmt::format("{:.{}f}×", factor, factor < 9.95 ? 1 : 0); }

std::string why_cheapest(const Explanation& answer, const CostModel& model) {
  const Candidate& best = answer.candidates.front();
  const CostModel::Link& link = answer.shape.topology.nodes > 1 ? model.between : model.inside;
  std::string text =
      fmt::format("cheapest of {} by the cost model, {}", answer.candidates.size(), seconds_text(best.cost.time));
  if (answer.candidates.size() == 1)
    text = fmt::format("the only one that serves here, {}", seconds_text(best.cost.time));
  if (answer.candidates.size() > 1 && best.cost.time > 0) {
    const Candidate& next = answer.candidates[1];
    const double factor = next.cost.time / best.cost.time;
    text += factor < 1.005 ? fmt::format(", no slower than {}", name_of(next.choice.algorithm))
                           : fmt::format(", {:.{}f}× faster than {}", factor, factor < 1.095 ? 2 : 1,
                                         name_of(next.choice.algorithm));
  }
  if (answer.shown.algorithm == Algorithm::hierarchical) {
    return text + ": most bytes stay inside the hosts, where links are faster";
  }
  const double waiting = static_cast<double>(best.cost.rounds) * link.latency +
                         static_cast<double>(std::max(best.cost.messages, best.cost.rounds)) * model.overhead;
  const double share = best.cost.time > 0 ? waiting / best.cost.time : 1;
  const auto percent = static_cast<int>(std::lround(100 * std::min(1.0, share)));
  return text + (share >= 0.5
                     ? fmt::format(": {} % of it is latency, so few rounds count most, and it takes {}", percent,
                                   best.cost.rounds)
                     : fmt::format(": {} % of it is moving and reducing bytes, so sending little counts most, and "
                                   "it sends {} per rank",
                                   100 - percent, format_bytes(best.cost.bytes_sent)));
}

std::string why(const Question& question, const Explanation& answer, const Table& table) {
  if (question.ranks == 1) return "a group of one: nothing is sent, whichever algorithm is chosen";
  const Candidate* shown = find(answer.candidates, answer.shown.algorithm);
  if (question.algorithm) {
    if (answer.shown == answer.selected) return "asked for, and the one that would be selected anyway";
    const Candidate* selected = find(answer.candidates, answer.selected.algorithm);
    return fmt::format("asked for; {} would be selected, {} instead of {}, {} as fast", name_of(answer.selected),
                       seconds_text(selected->cost.time), seconds_text(shown->cost.time),
                       times_text(shown->cost.time / selected->cost.time));
  }
  if (const TableRow* row = deciding_row(answer.shape, table, answer.selected)) {
    const Choice& cheapest = answer.candidates.front().choice;
    return fmt::format("a row of TUTTI_TABLE says so ({}); {}", row_text(*row),
                       cheapest.algorithm == answer.selected.algorithm
                           ? "the cost model would take it, too"
                           : fmt::format("the cost model would take {}", name_of(cheapest)));
  }
  return why_cheapest(answer, table.model);
}

std::string served_by(const Question& question, const Topology& topology) {
  constexpr std::string_view not_by_plan = "; the plan below is what native would do (-B native)";
  if (question.ranks == 1) return "alone: a group of one copies";
  if (question.backend == "mpi") return fmt::format("mpi: MPI chooses the algorithm{}", not_by_plan);
  if (question.backend == "ucx") return "native, by the plan below, its messages through UCX";
  if (question.backend == "native") return "native, by the plan below, its messages over TCP";
  if (topology.nodes <= 1) return fmt::format("shm: all ranks share the memory of one host{}", not_by_plan);
  return fmt::format("native, by the plan below, over {} hosts{}", topology.nodes,
                     question.backend == "shm" ? ": shm serves groups of one host" : "");
}

Choice choose(const Question& question, const Explanation& answer) {
  if (!question.algorithm || *question.algorithm == Algorithm::automatic) return answer.selected;
  if (*question.algorithm == answer.selected.algorithm) return answer.selected;
  if (const Candidate* wanted = find(answer.candidates, *question.algorithm)) return wanted->choice;
  std::vector<std::string_view> names;
  for (const Candidate& candidate : answer.candidates) names.push_back(name_of(candidate.choice.algorithm));
  const bool elsewhere = find_algorithm(question.verb, *question.algorithm) != nullptr;
  throw InvalidArgument(fmt::format(
      "--algorithm {}: does not serve {}{}; here serve {}", name_of(*question.algorithm), name_of(question.verb),
      elsewhere ? " without several hosts that have several ranks (--hosts)" : "", fmt::join(names, ", ")));
}

}  // namespace

std::string seconds_text(double seconds) {
  return format_duration(Duration(static_cast<std::int64_t>(std::llround(seconds * 1e9))));
}

std::string name_of(const Choice& choice) {
  if (choice.segment_bytes == 0) return std::string(tutti::name_of(choice.algorithm));
  return fmt::format("{} in segments of {}", tutti::name_of(choice.algorithm), format_bytes(choice.segment_bytes));
}

Explanation explain(const Question& question, const Table& table) {
  check(question);
  Explanation answer;
  answer.spec = spec_of(question);
  answer.shape = shape_of(question, answer.spec);
  answer.candidates = candidates(answer.shape, table);
  answer.selected = select(answer.shape, table);
  answer.shown = choose(question, answer);
  answer.spec.algorithm = answer.shown.algorithm;
  answer.spec.segment = answer.shown.segment(static_cast<std::int64_t>(size_of(question.dtype)));
  for (const CatalogRow& row : catalog(question.verb)) {
    if (find(answer.candidates, row.algorithm) == nullptr) answer.absent.push_back(row.algorithm);
  }
  answer.why = why(question, answer, table);
  answer.served_by = served_by(question, answer.shape.topology);
  return answer;
}

std::vector<int> parse_hosts(const std::string& text, int ranks) {
  std::vector<std::int64_t> per_host;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto number = parse_integer(std::string_view(text).substr(begin, end - begin));
    if (!number || *number < 1) {
      throw InvalidArgument(fmt::format(
          "--hosts {}: give a number of hosts, such as 2, or the ranks on each of them, such as 4,4", text));
    }
    per_host.push_back(*number);
    begin = end + 1;
  }
  if (per_host.size() == 1) {
    const std::int64_t hosts = per_host[0];
    if (hosts > ranks) throw InvalidArgument(fmt::format("--hosts {}: more hosts than ranks ({})", hosts, ranks));
    per_host.assign(static_cast<std::size_t>(hosts), ranks / hosts);
    for (int i = 0; i < ranks % hosts; ++i) ++per_host[static_cast<std::size_t>(i)];
  }
  const std::int64_t sum = std::accumulate(per_host.begin(), per_host.end(), std::int64_t{0});
  if (sum != ranks)
    throw InvalidArgument(fmt::format("--hosts {}: that makes {} ranks, not {} (-n)", text, sum, ranks));
  std::vector<int> node_of;
  for (std::size_t host = 0; host < per_host.size() && per_host.size() > 1; ++host) {
    node_of.insert(node_of.end(), static_cast<std::size_t>(per_host[host]), static_cast<int>(host));
  }
  return node_of;
}

}  // namespace tutti::cli
