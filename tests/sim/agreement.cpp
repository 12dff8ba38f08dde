// agreement.cpp: whether all members report the same cause.
// SPDX-License-Identifier: Apache-2.0
#include "agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace tutti::sim {
namespace {

using namespace std::chrono_literals;
using messages::Fault;

constexpr Duration mismatch_limit = 1s;  // from the call until all ranks know

class Agreement {
 public:
  Agreement(const Scenario& scenario, const History& history, const Truth& truth)
      : scenario_(scenario), history_(history), truth_(truth) {
    single_ = scenario.faults.size() + scenario.deviations.size() <= 1;
    only_kills_ = std::ranges::all_of(scenario.faults, [](const Fault& f) { return f.kind == Fault::Kind::kill_rank; });
  }

  std::vector<std::string> run() {
    for (std::size_t group = 0; group < scenario_.groups.size(); ++group) {
      check_causes(group);
      check_spread(group);
    }
    check_one_lost_rank();
    return std::move(violations_);
  }

 private:
  [[nodiscard]] bool counts(const Record& record) const {
    if (history_.killed[static_cast<std::size_t>(record.rank)] || record.endings == 0) return false;
    const bool left = std::ranges::any_of(scenario_.deviations, [&](const Deviation& each) {
      return each.kind == Deviation::Kind::leave && each.rank == record.rank;
    });
    if (left || truth_.is_out_of_touch(record.rank)) return false;
    return single_ || only_kills_ || !truth_.is_impaired(record.rank);
  }

  // One cause for all members: also after several faults, on the ranks that have none of their own.
  void check_causes(std::size_t group) {
    if (!truth_.is_connected()) return;  // there each part has its own story
    const Record* first = nullptr;
    for (const Record& record : history_.calls) {
      if (record.group != group || !counts(record) || !record.group_broken || record.outcome == Outcome::well) continue;
      if (first == nullptr) first = &record;
      if (record.outcome == first->outcome && record.cause == first->cause) continue;
      violations_.push_back(fmt::format(
          "group {} broke for different reasons:\n    rank {}: {}: {}\n    rank {}: {}: {}", group, first->rank,
          name_of(first->outcome), first->cause, record.rank, name_of(record.outcome), record.cause));
      return;
    }
  }

  // Once a group is broken for one member, no call succeeds, except on ranks whose data was already on its way.
  void check_spread(std::size_t group) {
    if (!single_ || !scenario_.faults.empty()) return;
    std::optional<Duration> broken;
    for (const Record& record : history_.calls) {
      const bool tells =
          record.group == group && counts(record) && record.group_broken && record.outcome != Outcome::well;
      if (tells && (!broken || record.ended < *broken)) broken = record.ended;
    }
    if (!broken) return check_unnoticed(group);
    if (truth_.has_message_mismatch(group)) {
      violations_.push_back(fmt::format("group {} broke, though nothing but a message differed in it", group));
    }
    for (const Record& record : history_.calls) {
      if (record.group != group || !counts(record)) continue;
      const Duration limit = std::max(record.started, *broken) + mismatch_limit;
      if (record.ended > limit || (record.outcome == Outcome::well && record.started > *broken + mismatch_limit)) {
        violations_.push_back(
            fmt::format("rank {}, group {}, call {}: ended as {} at {} ms, long after the group broke at {} ms",
                        record.rank, group, record.call, name_of(record.outcome), record.ended / 1ms, *broken / 1ms));
      }
    }
  }

  // A mismatch that no rank reports is one in which no rank waited for another: that is allowed. A message that differs fails alone.
  void check_unnoticed(std::size_t group) {
    if (!truth_.deviates(Deviation::Kind::mismatch, group)) return;
    for (const Record& record : history_.calls) {
      const bool fails_alone = truth_.is_message_mismatch(group, record.call) && record.outcome == Outcome::mismatch;
      if (record.group == group && record.outcome != Outcome::well && !fails_alone) {
        violations_.push_back(fmt::format("rank {}, group {}, call {}: a mismatch ended as {}", record.rank, group,
                                          record.call, name_of(record.outcome)));
      }
    }
  }

  void check_one_lost_rank() {
    if (!single_ || !truth_.is_connected()) return;
    std::map<int, int> reporters;  // by the rank that they say is lost
    for (const Record& record : history_.calls) {
      if (record.outcome == Outcome::lost && counts(record)) reporters.emplace(record.lost_rank, record.rank);
    }
    if (reporters.size() < 2) return;
    const auto first = reporters.begin(), second = std::next(first);
    violations_.push_back(
        fmt::format("a single fault, but rank {} says that rank {} is lost, and rank {} that rank {} is", first->second,
                    first->first, second->second, second->first));
  }

  const Scenario& scenario_;
  const History& history_;
  const Truth& truth_;
  bool single_ = false, only_kills_ = false;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> check_agreement(const Scenario& scenario, const History& history, const Truth& truth) {
  return Agreement(scenario, history, truth).run();
}

}  // namespace tutti::sim
