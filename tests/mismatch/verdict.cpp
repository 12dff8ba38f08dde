// verdict.cpp: whether a program ended as it should have.
// SPDX-License-Identifier: Apache-2.0
#include "verdict.hpp"

#include <fmt/format.h>

namespace tutti::mismatch {
namespace {

using Kind = Ending::Kind;

/// "#12", as errors write the number of the first call that differed.
std::string number_in_errors(const Program& program, int group, const Difference& difference) {
  // Number 0 is how the members learned about each other: in the world where they meet, in shared memory whose memory they read.
  const bool has_call_of_its_own = group == 0 || program.kind == contract::WorldKind::shm;
  return fmt::format("#{}", difference.index + (has_call_of_its_own ? 1 : 0));
}

bool names_call(std::string_view text, std::string_view number) {
  for (std::size_t at = text.find(number); at != std::string_view::npos; at = text.find(number, at + 1)) {
    const std::size_t end = at + number.size();
    if (end == text.size() || text[end] < '0' || text[end] > '9') return true;
  }
  return false;
}

class Judge {
 public:
  Judge(const Program& program, const Endings& endings, const std::string& log)
      : program_(program), endings_(endings), log_(log) {}

  std::vector<Violation> violations() {
    for (std::size_t rank = 0; rank < endings_.ranks.size(); ++rank) {
      if (const std::string& text = endings_.ranks[rank].outside; !text.empty())
        add("joining or leaving failed", fmt::format("rank {}: {}", rank, text));
    }
    if (!violations_.empty()) return std::move(violations_);  // nothing else means anything
    for (int group = 0; group < static_cast<int>(program_.groups.size()); ++group) judge_group(group);
    return std::move(violations_);
  }

 private:
  void judge_group(int group) {
    const auto difference = first_difference(program_, group);
    bool somebody_raised = false;
    for (const int rank : program_.groups[static_cast<std::size_t>(group)]) {
      const Ending& ending = endings_.ranks[static_cast<std::size_t>(rank)].groups[static_cast<std::size_t>(group)];
      const std::string who = fmt::format("group {}, rank {}", group, rank);
      for (const std::string& text : ending.wrong) add("wrong data in a call that ended well", who + ", " + text);
      if (!ending.later.empty()) add("a broken group did not stay broken alike", who + ", " + ending.later);
      somebody_raised |= ending.error.kind != Kind::fine;
      judge_error(group, ending, difference, who);
    }
    if (difference && !program_.closes && !somebody_raised && !log_names_it(*difference))
      add("silence: ranks that differ left without a word", fmt::format("group {}: {}", group, in_words(*difference)));
  }

  void judge_error(int group, const Ending& ending, const std::optional<Difference>& difference,
                   const std::string& who) {
    const Kind kind = ending.error.kind;
    const std::string raised = fmt::format("{}, call {}: {}", who, ending.at, ending.error.text);
    if (!difference) {
      if (kind != Kind::fine) add(fmt::format("{} although the ranks agree", name_of(kind)), raised);
      return;
    }
    if (kind == Kind::mismatch) {
      // Where several ranks were changed, two of them may find their own difference before they hear of an earlier one. A rank
      // that has left cannot say any more what it called.
      if (program_.closes && program_.mutations.size() == 1 &&
          !names_call(ending.error.text, number_in_errors(program_, group, *difference)))
        add("Mismatch that does not name the first call that differed",
            fmt::format("{}; {}", raised, in_words(*difference)));
      return;
    }
    if (program_.closes && kind == Kind::fine)
      return add("silence: no error although the ranks differ", fmt::format("{}: {}", who, in_words(*difference)));
    if (kind == Kind::fine) return;
    const bool left = kind == Kind::peer_lost || kind == Kind::aborted;
    if (!program_.closes && difference->lengths_differ && left) return;
    add(fmt::format("{} instead of Mismatch", name_of(kind)), fmt::format("{}; {}", raised, in_words(*difference)));
  }

  [[nodiscard]] bool log_names_it(const Difference& difference) const {
    const auto says = [&](std::string_view text) { return log_.find(text) != std::string::npos; };
    if (says("Mismatch") || says("mismatch") || says("same calls in the same order")) return true;
    return difference.lengths_differ && says("without taking part");
  }

  static std::string in_words(const Difference& difference) {
    return fmt::format("ranks {} and {} differ from call {} on{}", difference.one, difference.other, difference.index,
                       difference.missing ? ", which one of them does not make" : "");
  }

  void add(std::string rule, std::string text) { violations_.push_back({std::move(rule), std::move(text)}); }

  const Program& program_;
  const Endings& endings_;
  const std::string& log_;
  std::vector<Violation> violations_;
};

}  // namespace

std::vector<Violation> judge(const Program& program, const Endings& endings, const std::string& log) {
  return Judge(program, endings, log).violations();
}

Naming naming_of(const Program& program, const Endings& endings) {
  Naming naming;
  for (std::size_t group = 0; group < program.groups.size(); ++group) {
    const auto difference = first_difference(program, static_cast<int>(group));
    if (!difference) continue;
    const std::string number = number_in_errors(program, static_cast<int>(group), *difference);
    for (const int rank : program.groups[group]) {
      const Ending& ending = endings.ranks[static_cast<std::size_t>(rank)].groups[group];
      if (ending.error.kind != Kind::mismatch) continue;
      ++naming.told;
      if (names_call(ending.error.text, number)) ++naming.named;
    }
  }
  return naming;
}

}  // namespace tutti::mismatch
