// check.cpp: data, ends, deadlines, and whether what was reported could happen at all.
// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agreement.hpp"
#include "truth.hpp"

namespace tutti::sim {
namespace {

using namespace std::chrono_literals;
using messages::Fault;

constexpr Duration nap = 20ms;            // the longest a rank sleeps while it has a call under way
constexpr Duration travel_limit = 200ms;  // of a flood, through every rank
constexpr int runs_to_end = 40;           // so often a slow rank gets the processor, before it has understood

class Checker {
 public:
  Checker(const Scenario& scenario, const History& history)
      : scenario_(scenario), history_(history), truth_(scenario, history) {}

  std::vector<std::string> run() {
    check_course();
    for (const Record& record : history_.calls) {
      if (history_.killed[static_cast<std::size_t>(record.rank)]) continue;
      check_end(record);
      check_arrays(record);
      check_report(record);
    }
    for (const CreationRecord& creation : history_.creations) {
      if (!history_.killed[static_cast<std::size_t>(creation.rank)]) check_creation(creation);
    }
    for (std::string& violation : check_agreement(scenario_, history_, truth_))
      violations_.push_back(std::move(violation));
    return std::move(violations_);
  }

 private:
  template <class... Args>
  void complain(const Record& record, fmt::format_string<Args...> text, Args&&... args) {
    violations_.push_back(fmt::format("rank {}, group {}, call {} ({}): {}", record.rank, record.group, record.call,
                                      describe(scenario_.groups[record.group].calls[record.call]),
                                      fmt::format(text, std::forward<Args>(args)...)));
  }

  void check_course() {
    if (history_.out_of_steps) violations_.push_back("the ranks keep each other busy: too many steps");
    if (!history_.complete)
      violations_.push_back(fmt::format("not all ranks came to an end in {}", in_seconds(history_.elapsed)));
  }

  void check_end(const Record& record) {
    if (record.endings == 0) return complain(record, "never ended; its deadline was {}", in_seconds(record.deadline));
    if (record.endings > 1) complain(record, "ended {} times", record.endings);
    const Duration limit = record.deadline + grace_of(scenario_, record.rank);
    if (record.ended > limit) {
      complain(record, "ended at {}, but its deadline and the grace were over at {}: {}", in_seconds(record.ended),
               in_seconds(limit), record.text);
    }
  }

  void check_arrays(const Record& record) {
    if (!record.damage.empty()) complain(record, "ended as {}, but {}", name_of(record.outcome), record.damage);
    if (record.changed_afterwards)
      complain(record, "its arrays changed after it had ended as {}", name_of(record.outcome));
  }

  void check_report(const Record& record) {
    const auto scripted = [&](Deviation::Kind kind) { return truth_.deviates(kind, record.group); };
    switch (record.outcome) {
      case Outcome::pending:
      case Outcome::well: return;
      case Outcome::other: return complain(record, "an error of no known kind: {}", record.text);
      case Outcome::refused:
        if (!is_scripted(record, Deviation::Kind::refusal)) complain(record, "refused: {}", record.text);
        return;
      case Outcome::mismatch:
        if (!scripted(Deviation::Kind::mismatch) && !is_out_of_step(record))
          complain(record, "a mismatch where there is none: {}", record.text);
        return;
      case Outcome::aborted: return check_aborted(record);
      case Outcome::lost:
        if (!truth_.is_suspect(record.lost_rank) && !may_miss_goodbye(record)) {
          complain(record, "rank {} is blamed, which did nothing wrong: {}", record.lost_rank, record.text);
        }
        return;
      case Outcome::timeout: return check_timeout(record);
    }
  }

  // A rank that was given up hears no goodbyes, and one that makes a call of its own waits for ranks that need not stay for it.
  [[nodiscard]] bool may_miss_goodbye(const Record& record) const {
    const bool apart = truth_.is_impaired(record.rank) || truth_.deviates(Deviation::Kind::mismatch, record.group);
    return apart && history_.left.contains(record.lost_rank);
  }

  // A message that its sender took back, when it left or its time was over, waits for no receive, and the next one arrives in its place;
  // one that its receiver gave up waits for the next receive.
  [[nodiscard]] bool is_out_of_step(const Record& record) const {
    const GroupScript& script = scenario_.groups[record.group];
    const auto& own = script.calls[record.call].message;
    if (!own) return false;
    const auto given_up = [&](std::size_t call, int rank) {
      const int member = script.members[static_cast<std::size_t>(rank)];
      return truth_.had_given_up(record.group, call, member, record.ended);
    };
    for (std::size_t call = 0; call <= record.call; ++call) {
      const auto& other = script.calls[call].message;
      if (!other || other->from != own->from || other->to != own->to || other->tag != own->tag) continue;
      if (given_up(call, own->from) || (call < record.call && given_up(call, own->to))) return true;
    }
    return false;
  }

  void check_aborted(const Record& record) {
    if (truth_.leaves(record.rank) || truth_.deviates(Deviation::Kind::abort, record.group)) return;
    const bool refused = std::ranges::any_of(scenario_.deviations, [&](const Deviation& each) {
      return each.kind == Deviation::Kind::refusal && each.group == record.group && each.call == record.call;
    });
    if (!refused || record.group_broken) complain(record, "aborted by nobody: {}", record.text);
  }

  void check_timeout(const Record& record) {
    const bool possible = !scenario_.faults.empty() || truth_.deviates(Deviation::Kind::absence, record.group) ||
                          !history_.left_early.empty();
    if (!possible) return complain(record, "timed out, though nobody was late: {}", record.text);
    if (record.cause.starts_with("the group of ")) return;  // made in vain: check_creation looks at that
    const TimeoutText text = parse_timeout(record.cause);
    if (text.reporter < 0) return complain(record, "a timeout that does not say whose: {}", record.text);
    for (const int named : text.named) {
      if (!is_late(record.group, text, named)) {
        complain(record, "rank {} of the group is blamed, which is not late: {}", named, record.text);
      }
    }
  }

  // Whether a rank named in a Timeout has a fault, or had not made the call when the reporter's time was over.
  [[nodiscard]] bool is_late(std::size_t group, const TimeoutText& text, int named) const {
    const GroupScript& script = scenario_.groups[group];
    const int rank = script.members[static_cast<std::size_t>(named)];
    const int reporter = script.members[static_cast<std::size_t>(text.reporter)];
    if (truth_.is_suspect(rank) || truth_.is_out_of_touch(reporter) || truth_.is_slow(reporter)) return true;
    return std::ranges::any_of(history_.calls, [&](const Record& each) {
      if (each.rank != reporter || each.group != group) return false;
      const ScenarioCall& call = script.calls[each.call];
      const bool this_one = text.is_message ? call.message && call.concerns(named)
                                            : !call.message && script.sequence_of(each.call) == text.sequence;
      if (this_one && text.is_message && truth_.had_given_up(group, each.call, rank, each.deadline)) return true;
      return this_one && truth_.had_not_called(group, each.call, rank, each.deadline);
    });
  }

  [[nodiscard]] bool is_scripted(const Record& record, Deviation::Kind kind) const {
    return std::ranges::any_of(scenario_.deviations, [&](const Deviation& each) {
      return each.kind == kind && each.rank == record.rank && each.group == record.group && each.call == record.call;
    });
  }

  void check_creation(const CreationRecord& creation) {
    const auto wrong = [&](std::string_view what) {
      violations_.push_back(fmt::format("rank {}, making group {}: {}", creation.rank, creation.group, what));
    };
    if (!creation.ended_at_all) return truth_.leaves(creation.rank) ? void() : wrong("never ended");
    if (creation.ended > creation.deadline + grace_of(scenario_, creation.rank)) wrong("ended too late");
    if (!creation.failed) return;
    if (creation.cause.kind != control::Cause::Kind::timeout && creation.cause.kind != control::Cause::Kind::lost) {
      wrong(fmt::format("failed in a way that cannot be: {}", creation.cause.text));
    }
    if (truth_.is_out_of_touch(creation.rank)) return;  // it may not have heard of those that joined
    for (const int rank : creation.cause.culprits) {
      if (!truth_.is_suspect(rank))
        wrong(fmt::format("rank {} is blamed, which joined: {}", rank, creation.cause.text));
    }
  }

  static std::string in_seconds(Duration d) {
    return fmt::format("{:.4f} s", std::chrono::duration<double>(d).count());
  }

  const Scenario& scenario_;
  const History& history_;
  Truth truth_;
  std::vector<std::string> violations_;
};

}  // namespace

// A rank that learns nothing from the others decides for itself after `patience`; then it needs one more look.
Duration grace_of(const Scenario& scenario, int rank) {
  Duration grace = control::ControlOptions{}.verdicts.patience + 2 * nap + travel_limit;
  for (const Fault& fault : scenario.faults) {
    if (fault.a != rank) continue;
    if (fault.kind == Fault::Kind::stall_rank) grace += fault.duration;
    if (fault.kind == Fault::Kind::slow_rank) grace += runs_to_end * fault.duration;
  }
  return grace;
}

std::vector<std::string> check(const Scenario& scenario, const History& history) {
  return Checker(scenario, history).run();
}

}  // namespace tutti::sim
