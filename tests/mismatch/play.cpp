// play.cpp: runs a program with ranks as threads, and records how it ended on each rank.
// SPDX-License-Identifier: Apache-2.0
#include "play.hpp"

#include <fmt/format.h>

#include <barrier>
#include <deque>
#include <memory>
#include <thread>
#include <utility>

#include "store/memory_store.hpp"

namespace tutti::mismatch {
namespace {

using contract::Case;
using contract::Outcome;
using contract::Part;
using Kind = Ending::Kind;

/// One rank's way through the program. Goes on in the other groups after an error in one.
class Player {
 public:
  Player(const Program& program, std::vector<Group> groups)
      : program_(program),
        groups_(std::move(groups)),
        endings_(groups_.size()),
        numbers_(groups_.size()),
        tried_broken_(groups_.size()) {}

  std::vector<Ending> play(int rank) {
    const auto at = static_cast<std::size_t>(rank);
    for (std::size_t i = 0; i < program_.calls[at].size(); ++i) {
      if (i == program_.pauses[at].before) std::this_thread::sleep_for(program_.pauses[at].length);
      make(program_.calls[at][i]);
    }
    while (!pending_.empty()) wait_for_oldest();
    return std::move(endings_);
  }

 private:
  struct Pending {
    std::size_t group = 0, number = 0;
    bool must_fail = false;  // made after the group's error
    std::string text{};
    std::unique_ptr<Part> part{};
    Work work{};
  };

  void make(const ProgramCall& call) {
    const auto at = static_cast<std::size_t>(call.group);
    const std::size_t number = numbers_[at]++;
    Ending& ending = endings_[at];
    // One call after the error shows that the group stays broken; the others would say the same.
    const bool must_fail = ending.error.kind != Kind::fine;
    if (must_fail && std::exchange(tried_broken_[at], 1) != 0) return;
    Group& group = groups_[at];
    Pending pending{.group = at,
                    .number = number,
                    .must_fail = must_fail,
                    .text = fmt::format("call {}: {}", number, describe(call.what)),
                    .part = std::make_unique<Part>(call.what, group.rank(), group.size())};
    if (!call.what.asynchronous) {
      // Some ranks prepare a call that the others just make: that is no difference.
      const bool prepares = (call.what.seed + static_cast<std::uint64_t>(group.rank())) % 4 == 0;
      return take(pending, contract::outcome_of([&] {
                    if (!prepares) return group.run(pending.part->request());
                    Prepared prepared = group.prepare(pending.part->request());
                    prepared.start();
                    prepared.wait();
                  }));
    }
    const Outcome outcome = contract::outcome_of([&] { pending.work = group.start(pending.part->request()); });
    if (outcome.kind != Kind::fine) return take(pending, outcome);
    pending_.push_back(std::move(pending));
    if (static_cast<int>(pending_.size()) > program_.works_max && program_.style != Style::posted) wait_for_oldest();
  }

  void wait_for_oldest() {
    Pending oldest = std::move(pending_.front());
    pending_.pop_front();
    take(oldest, contract::outcome_of([&] { oldest.work.wait(); }));
  }

  void take(const Pending& pending, const Outcome& outcome) {
    Ending& ending = endings_[pending.group];
    if (outcome.kind == Kind::fine) {
      if (const auto difference = pending.part->difference())
        ending.wrong.push_back(fmt::format("{}: {}", pending.text, *difference));
      if (pending.must_fail) ending.later = pending.text + " ended well on a broken group";
      return;
    }
    if (const auto damage = pending.part->damage())
      ending.wrong.push_back(fmt::format("{}: {}", pending.text, *damage));
    if (ending.error.kind == Kind::fine) {
      ending.error = outcome;
      ending.at = pending.number;
    } else if (outcome.kind != ending.error.kind) {
      ending.later = fmt::format("{} raised {}: {}", pending.text, name_of(outcome.kind), outcome.text);
    }
  }

  const Program& program_;
  std::vector<Group> groups_;
  std::vector<Ending> endings_;
  std::vector<std::size_t> numbers_;  // of the next call on each group
  std::vector<char> tried_broken_;
  std::deque<Pending> pending_;  // destroyed first: a work's arrays live as long as the work
};

/// Where ranks differ, they wait for each other once all have joined, outside of the library: a world that breaks while a rank
/// is still joining it is no ending that a program can be blamed for. Ranks that agree begin when they like.
class StartLine {
 public:
  explicit StartLine(const Program& program) : ranks_(program.size) {
    for (int group = 0; group < static_cast<int>(program.groups.size()); ++group)
      is_used_ |= first_difference(program, group).has_value();
  }
  void wait() {
    if (is_used_) ranks_.arrive_and_wait();
  }
  void give_up() { ranks_.arrive_and_drop(); }

 private:
  std::barrier<> ranks_;
  bool is_used_ = false;
};

std::vector<Group> join_groups(const Program& program, int rank, const std::shared_ptr<Store>& store) {
  const contract::WorldOptions world{.size = program.size, .timeout = call_timeout};
  std::vector<Group> groups{contract::join_as_thread(world, rank, store, contract::backend_of(program.kind))};
  for (std::size_t i = 1; i < program.groups.size(); ++i) groups.push_back(groups[0].subgroup(program.groups[i]));
  return groups;
}

RankEnding live(const Program& program, int rank, const std::shared_ptr<Store>& store, StartLine& start) {
  RankEnding ending;
  ending.groups.resize(program.groups.size());
  std::vector<Group> groups;
  const Outcome joining = contract::outcome_of([&] { groups = join_groups(program, rank, store); });
  if (joining.kind != Kind::fine) {
    start.give_up();
    ending.outside = fmt::format("{}: {}", name_of(joining.kind), joining.text);
    return ending;
  }
  start.wait();
  const Outcome rest = contract::outcome_of([&] { ending.groups = Player(program, std::move(groups)).play(rank); });
  if (rest.kind != Kind::fine) ending.outside = fmt::format("{}: {}", name_of(rest.kind), rest.text);
  return ending;
}

}  // namespace

std::string_view name_of(Kind kind) {
  constexpr std::string_view names[] = {"fine",     "InvalidArgument", "Mismatch",     "Timeout",
                                        "PeerLost", "Aborted",         "another error"};
  return names[static_cast<int>(kind)];
}

std::string describe(const Endings& endings) {
  std::string text;
  for (std::size_t rank = 0; rank < endings.ranks.size(); ++rank) {
    if (!endings.ranks[rank].outside.empty()) text += fmt::format("rank {}: {}\n", rank, endings.ranks[rank].outside);
    for (std::size_t group = 0; group < endings.ranks[rank].groups.size(); ++group) {
      const Ending& ending = endings.ranks[rank].groups[group];
      if (ending.error.kind == Kind::fine) continue;
      text += fmt::format("group {}, rank {}, call {}: {}: {}\n", group, rank, ending.at, name_of(ending.error.kind),
                          ending.error.text);
    }
  }
  return text;
}

Endings play(const Program& program) {
  const auto begin = std::chrono::steady_clock::now();
  const std::shared_ptr<Store> store = memory_store();
  StartLine start(program);
  Endings endings;
  endings.ranks.resize(static_cast<std::size_t>(program.size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < program.size; ++rank) {
      threads.emplace_back(
          [&, rank] { endings.ranks[static_cast<std::size_t>(rank)] = live(program, rank, store, start); });
    }
  }
  endings.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return endings;
}

}  // namespace tutti::mismatch
