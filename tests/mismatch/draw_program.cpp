// draw_program.cpp: a random program from a seed: the same calls on all ranks, then mutations on some.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "base/hash.hpp"
#include "base/random.hpp"
#include "program.hpp"

namespace tutti::mismatch {
namespace {

using namespace contract;

constexpr int collective_count = static_cast<int>(Verb::send);
constexpr std::int64_t short_lengths[] = {0, 1, 2, 7, 64};
constexpr std::int64_t all_lengths[] = {0, 1, 2, 7, 64, 1000, 9001, 70'001};
// Unlike any call that is drawn: it never stands for a missing one.
const Case closing{.verb = Verb::all_reduce, .dtype = DType::uint64, .op = Op::max, .length = 3};
const std::vector<Op> all_ops = {Op::sum,  Op::mean, Op::product, Op::min,         Op::max,
                                 Op::band, Op::bor,  Op::bxor,    Op::premul(0.75)};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(scramble(seed)) { program_.seed = seed; }

  Program program() {
    draw_frame();
    std::vector<ProgramCall> common;
    for (int i = 0; i < call_count_; ++i) common.push_back(draw_call());
    if (many_ && random_.chance(0.5)) {  // all alike: what one call brings may be taken for another's
      for (ProgramCall& call : common) call.what = common[0].what;
    }
    program_.calls.resize(static_cast<std::size_t>(program_.size));
    for (int rank = 0; rank < program_.size; ++rank) {
      for (const ProgramCall& call : common) {
        if (is_member(rank, call.group)) calls_of(rank).push_back(with_own_choices(call));
      }
    }
    if (!random_.chance(0.2)) mutate_some();
    if (program_.closes) close();
    draw_pauses();
    set_seeds();
    return std::move(program_);
  }

 private:
  void draw_frame() {
    program_.kind = random_.chance(0.5) ? WorldKind::shm : WorldKind::tcp;
    program_.size = static_cast<int>(random_.between(2, 8));
    program_.style = Style(random_.below(3));
    // Ranks that wait in two groups for each other would not leave.
    program_.closes = program_.style == Style::posted || random_.chance(0.8);
    many_ = random_.chance(0.12);
    call_count_ = static_cast<int>(many_ ? random_.between(100, 800) : random_.between(1, 12));
    program_.works_max = many_ ? call_count_ : static_cast<int>(random_.between(1, 8));
    std::vector<int> everyone(static_cast<std::size_t>(program_.size));
    std::iota(everyone.begin(), everyone.end(), 0);
    program_.groups.push_back(everyone);
    const int wanted = program_.style == Style::one_group ? (random_.chance(0.3) ? 1 : 0) : 1 + int(random_.below(2));
    for (int i = 0; i < wanted; ++i) {
      std::shuffle(everyone.begin(), everyone.end(), random_);
      program_.groups.emplace_back(everyone.begin(), everyone.begin() + random_.between(2, program_.size));
    }
  }

  [[nodiscard]] bool is_member(int rank, int group) const {
    return std::ranges::count(program_.groups[static_cast<std::size_t>(group)], rank) > 0;
  }
  std::vector<ProgramCall>& calls_of(int rank) { return program_.calls[static_cast<std::size_t>(rank)]; }
  template <class T>
  T one_of(std::span<const T> values) {
    return one_of_by(random_, values);
  }
  template <class T>
  static T one_of_by(Random& random, std::span<const T> values) {
    return values[random.below(values.size())];
  }

  Case draw_case() {
    Case what;
    do {
      what = {};
      what.verb = Verb(random_.below(collective_count));
      what.dtype = DType(random_.below(dtype_count));
      what.op = one_of<Op>(all_ops);
      what.length =
          many_ || random_.chance(0.7) ? one_of<std::int64_t>(short_lengths) : one_of<std::int64_t>(all_lengths);
      what.shape = random_.chance(0.8) ? Shape::line : Shape::rows;
      what.sizing = random_.chance(0.85) ? Sizing::even : Sizing::exchanged;
      what.root = static_cast<std::uint32_t>(random_.below(64));
    } while (!makes_sense(what));
    return what;
  }

  ProgramCall draw_call() {
    const bool only = program_.style == Style::one_group;
    const int groups = static_cast<int>(program_.groups.size());
    return {.group = only ? groups - 1 : static_cast<int>(random_.below(program_.groups.size())), .what = draw_case()};
  }

  // What each rank may choose for itself without a difference.
  ProgramCall with_own_choices(ProgramCall call) {
    call.what.asynchronous = program_.style == Style::posted || random_.chance(many_ ? 0.98 : 0.5);
    Case inside = call.what;
    inside.in_place = true;
    if (inside.verb != Verb::barrier && random_.chance(0.4) && makes_sense(inside)) call.what = inside;
    return call;
  }

  void mutate_some() {
    const int wanted = random_.chance(0.8) ? 1 : 2;
    for (int i = 0; i < wanted; ++i) {
      // Mostly one rank against the rest; sometimes several ranks do the same other thing.
      const std::uint64_t kind = random_.next();
      const std::uint64_t draws = random_.next();
      const int first = static_cast<int>(random_.below(static_cast<std::uint64_t>(program_.size)));
      const int ranks = random_.chance(0.75) ? 1 : 2;
      for (int k = 0; k < std::min(ranks, program_.size - 1); ++k) {
        Random same(draws);
        mutate((first + k) % program_.size, kind, same);
      }
    }
  }

  void mutate(int rank, std::uint64_t kind, Random& random) {
    std::vector<ProgramCall>& calls = calls_of(rank);
    if (calls.empty()) return;
    const std::size_t at = random.chance(program_.closes ? 0.2 : 0.6) ? calls.size() - 1 : random.below(calls.size());
    // The styles in which ranks must enter the same number of calls know replacements and swaps only.
    const bool in_step = program_.style == Style::in_step;
    // A call that is missing or too much at the very end is another case where nobody closes: drawn more often there.
    const bool at_end = !in_step && !program_.closes && at + 1 == calls.size() && kind / 9 % 2 == 0;
    switch (in_step ? kind % 6 : at_end ? 6 + kind / 18 % 2 : kind % 9) {
      case 5: return swap(rank, calls, at, in_step ? at + 1 : random.below(calls.size()));
      case 6: {
        note(rank, fmt::format("without call {} ({})", at, describe(calls[at].what)));
        calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(at));
        return;
      }
      case 7: {
        Case added = draw_case();
        added.sizing = Sizing::even;  // see change_call
        ProgramCall extra = with_own_choices({.group = calls[at].group, .what = added});
        note(rank, fmt::format("has an extra call {} ({})", at, describe(extra.what)));
        calls.insert(calls.begin() + static_cast<std::ptrdiff_t>(at_end ? at + 1 : at), extra);
        return;
      }
      case 8: return change_group(rank, calls[at], at);
      default: return change_call(rank, calls[at], at, kind % 5, random);
    }
  }

  void swap(int rank, std::vector<ProgramCall>& calls, std::size_t a, std::size_t b) {
    if (b >= calls.size() || calls[a].group != calls[b].group) return;
    std::swap(calls[a], calls[b]);
    note(rank, fmt::format("calls {} and {} in the other order", a, b));
  }

  void change_group(int rank, ProgramCall& call, std::size_t at) {
    for (int group = 0; group < static_cast<int>(program_.groups.size()); ++group) {
      if (program_.style != Style::posted || group == call.group || !is_member(rank, group)) continue;
      note(rank, fmt::format("call {} on group {} instead of {}", at, group, call.group));
      call.group = group;
      return;
    }
  }

  // A call that only its root knows all about, or whose sizes each rank brings, is changed in verb and root only: anything else
  // is no difference, or a quarrel with the array that the caller has ready.
  void change_call(int rank, ProgramCall& call, std::size_t at, std::uint64_t field, Random& random) {
    const Case before = call.what;
    const auto size = static_cast<int>(program_.groups[static_cast<std::size_t>(call.group)].size());
    for (int attempt = 0; attempt < 40; ++attempt) {
      Case after = before;
      // What the verb does not have (a root, say) cannot be changed: then it is another field.
      const std::uint64_t which = field + static_cast<std::uint64_t>(attempt / 8);
      switch (before.sizing == Sizing::exchanged ? which % 2 : which % 5) {
        case 0: after.verb = Verb(random.below(collective_count)); break;
        case 1: after.root = static_cast<std::uint32_t>(random.below(64)); break;
        case 2: after.dtype = DType(random.below(dtype_count)); break;
        case 3:
          after.length =
              many_ ? one_of_by<std::int64_t>(random, short_lengths) : one_of_by<std::int64_t>(random, all_lengths);
          break;
        default: after.op = one_of_by<Op>(random, all_ops); break;
      }
      if (!makes_sense(after) || same_call(before, after, size)) continue;
      call.what = after;
      return note(rank, fmt::format("call {} is {} instead of {}", at, describe(after), describe(before)));
    }
  }

  void note(int rank, const std::string& text) { program_.mutations.push_back(fmt::format("rank {}: {}", rank, text)); }

  // The world last: a rank that waits there is not missed in a group of its own.
  void close() {
    for (int rank = 0; rank < program_.size; ++rank) {
      for (int group = static_cast<int>(program_.groups.size()); group-- > 0;) {
        if (!is_member(rank, group)) continue;
        for (int i = 0; i < 2; ++i) calls_of(rank).push_back({.group = group, .what = closing});
      }
    }
  }

  void draw_pauses() {
    for (const std::vector<ProgramCall>& calls : program_.calls) {
      const std::chrono::milliseconds length(random_.chance(0.3) ? random_.between(1, 40) : 0);
      program_.pauses.push_back({.before = random_.below(calls.size() + 1), .length = length});
    }
  }

  // By the call's number on its group: two calls that trade places and are alike bring the same data, so that nothing differs.
  void set_seeds() {
    for (std::vector<ProgramCall>& calls : program_.calls) {
      std::vector<std::uint64_t> numbers(program_.groups.size());
      for (ProgramCall& call : calls) {
        const auto group = static_cast<std::uint64_t>(call.group);
        call.what.seed = Hash().add(program_.seed).add(group).add(numbers[group]++).value();
      }
    }
  }

  Random random_;
  Program program_;
  bool many_ = false;
  int call_count_ = 0;
};

}  // namespace

Program draw_program(std::uint64_t seed) { return Draw(seed).program(); }

}  // namespace tutti::mismatch
