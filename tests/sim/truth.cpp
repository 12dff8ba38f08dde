// truth.cpp: what really went wrong, and which ranks may be named for it.
// SPDX-License-Identifier: Apache-2.0
#include "truth.hpp"

#include <algorithm>
#include <regex>

namespace tutti::sim {
namespace {

using messages::Fault;

const Duration news_limit = control::VerdictTimes{}.settle;

bool concerns_link(const Fault& fault) { return fault.kind <= Fault::Kind::cut_one_way; }

// Whether the links that are neither cut nor stalled, of ranks that are not killed, join all those ranks.
bool is_connected_without(const std::vector<Fault>& faults, int size) {
  std::set<int> dead;
  std::set<std::pair<int, int>> broken;
  for (const Fault& fault : faults) {
    if (fault.kind == Fault::Kind::kill_rank) dead.insert(fault.a);
    if (concerns_link(fault)) broken.insert(std::minmax(fault.a, fault.b));
  }
  std::set<int> reached;
  std::vector<int> open;
  for (int rank = 0; rank < size && open.empty(); ++rank) {
    if (!dead.contains(rank)) open.push_back(rank);
  }
  while (!open.empty()) {
    const int rank = open.back();
    open.pop_back();
    if (!reached.insert(rank).second) continue;
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank && !dead.contains(peer) && !broken.contains(std::minmax(rank, peer))) open.push_back(peer);
    }
  }
  return reached.size() + dead.size() == static_cast<std::size_t>(size);
}

}  // namespace

Truth::Truth(const Scenario& scenario, const History& history) : scenario_(scenario), history_(history) {
  for (const Fault& fault : scenario.faults) {
    if (fault.at > history.elapsed) continue;
    suspects_.insert(fault.a);
    impaired_.insert(fault.a);
    if (fault.kind == Fault::Kind::slow_rank || fault.kind == Fault::Kind::stall_rank) slow_.insert(fault.a);
    const bool late_news = fault.kind == Fault::Kind::delay_rank || fault.kind == Fault::Kind::slow_rank;
    if (late_news && fault.duration > news_limit) out_of_touch_.insert(fault.a);
    if (!concerns_link(fault)) continue;
    suspects_.insert(fault.b);
    impaired_.insert(fault.b);
  }
  for (const Deviation& deviation : scenario.deviations) {
    if (deviation.kind == Deviation::Kind::leave) suspects_.insert(deviation.rank);
  }
  suspects_.insert(history.left_early.begin(), history.left_early.end());
  // Once the others have left, the ends of a link are alone with each other.
  const bool alone = scenario.leave_when_done && std::ranges::any_of(scenario.faults, concerns_link);
  connected_ = !alone && is_connected_without(scenario.faults, scenario.cluster.size);
}

bool Truth::had_not_called(std::size_t group, std::size_t call, int rank, Duration by) const {
  return std::ranges::none_of(history_.calls, [&](const Record& record) {
    return record.group == group && record.call == call && record.rank == rank && record.started < by;
  });
}

bool Truth::deviates(Deviation::Kind kind, std::size_t group) const {
  return std::ranges::any_of(scenario_.deviations,
                             [&](const Deviation& each) { return each.kind == kind && each.group == group; });
}

bool Truth::is_message_mismatch(std::size_t group, std::size_t call) const {
  return std::ranges::any_of(scenario_.deviations, [&](const Deviation& each) {
    return each.kind == Deviation::Kind::mismatch && each.group == group && each.call == call &&
           scenario_.groups[group].calls[call].message;
  });
}

bool Truth::has_message_mismatch(std::size_t group) const {
  return std::ranges::any_of(scenario_.deviations,
                             [&](const Deviation& each) { return is_message_mismatch(group, each.call); });
}

bool Truth::had_given_up(std::size_t group, std::size_t call, int rank, Duration by) const {
  return std::ranges::any_of(history_.calls, [&](const Record& record) {
    return record.group == group && record.call == call && record.rank == rank && record.endings > 0 &&
           record.outcome != Outcome::well && record.ended <= by;
  });
}

bool Truth::leaves(int rank) const {
  return std::ranges::any_of(scenario_.deviations, [&](const Deviation& each) {
    return each.kind == Deviation::Kind::leave && each.rank == rank;
  });
}

bool Truth::someone_left() const {
  return std::ranges::any_of(scenario_.deviations,
                             [](const Deviation& each) { return each.kind == Deviation::Kind::leave; });
}

namespace {

/// The ranks in "0, 3-7 and 12".
void add_ranks(const std::string& list, std::vector<int>& ranks) {
  static const std::regex run(R"((\d+)(-(\d+))?)");
  for (std::sregex_iterator at(list.begin(), list.end(), run), end; at != end; ++at) {
    const int first = std::stoi((*at)[1]), last = (*at)[3].matched ? std::stoi((*at)[3]) : first;
    for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
  }
}

}  // namespace

TimeoutText parse_timeout(const std::string& cause) {
  static const std::regex head(R"(^(\w+)( #(\d+))?.*? on rank (\d+))"), name(R"(rank (\d+)( \(host|, which|,|$))"),
      names(R"(ranks ([\d, -]+(and \d+)?)( and \d+ more)?, each of which)");
  TimeoutText text;
  std::smatch found;
  if (!std::regex_search(cause, found, head)) return text;
  text.reporter = std::stoi(found[4]);
  text.is_message = found[1] == "send" || found[1] == "recv";
  if (found[3].matched) text.sequence = std::stoull(found[3]);
  const std::size_t begin = cause.find("waiting for ");
  if (begin == std::string::npos) return text;
  const std::string rest = cause.substr(begin);
  for (std::sregex_iterator at(rest.begin(), rest.end(), name), end; at != end; ++at)
    text.named.push_back(std::stoi((*at)[1]));
  for (std::sregex_iterator at(rest.begin(), rest.end(), names), end; at != end; ++at) add_ranks((*at)[1], text.named);
  return text;
}

}  // namespace tutti::sim
