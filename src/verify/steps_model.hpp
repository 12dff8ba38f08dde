// steps_model.hpp: for the tests: the flags' protocol on a model of memory, with plain slots in which a race is a failure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "intranode/steps.hpp"
#include "verify/interleave.hpp"

namespace tutti::intranode::modelled {

using shm::interleave::Checker;
using shm::interleave::ModelAtomics;
using shm::interleave::ModelPlain;
using shm::interleave::ModelWord;
using shm::interleave::Verdict;

struct Model : ModelAtomics {
  static constexpr int inline_slots = 2, slots = 2, lines = 1;  // … of a slot
  static constexpr int all_slots = 4;                           // with those for crossing
  struct InlineHeader {};
};
struct ModelOfManyInlineSlots : Model {
  static constexpr int inline_slots = 4;  // as they are waited for, too
};
struct ModelOfThree : Model {
  static constexpr int inline_slots = 1, all_slots = 2;
};
struct ReductionsOfThree : Model {
  static constexpr int inline_slots = 1, slots = 1, lines = 2, all_slots = 1;
};
struct ModelOfInlineSlots : ModelAtomics {
  static constexpr int inline_slots = 2, slots = 2, lines = 1, all_slots = 2;
  struct InlineHeader {
    ModelPlain<std::uint64_t> payload;
  };
};
template <std::memory_order load_order, std::memory_order store_order, class Base = Model>
struct Weakened : Base {
  struct LongWord : ModelWord<std::uint64_t> {
    using ModelWord::ModelWord;
    [[nodiscard]] std::uint64_t load(std::memory_order) const { return ModelWord::load(load_order); }
    void store(std::uint64_t value, std::memory_order) { ModelWord::store(value, store_order); }
  };
};

// One rank's memory. What is reduced back has a line for each peer, in their order; everything else is in the first.
template <class Policy>
struct Desk {
  Flags<Policy> flags;
  ModelPlain<std::uint64_t> slots[Policy::all_slots][Policy::lines];
};
template <class Policy>
using Desks = std::deque<Desk<Policy>>;

inline std::uint64_t value_of(SequenceNumber first, std::int64_t round, int rank) {
  return first * 100 + static_cast<std::uint64_t>(round) * 10 + static_cast<std::uint64_t>(rank);
}

inline std::uint64_t reduced_value(std::uint64_t value) { return value + 5; }

enum class Way { one_shot, alternating, reduced, inline_slot, inline_broadcast, broadcast };

inline bool is_inline_way(Way way) { return way == Way::inline_slot || way == Way::inline_broadcast; }
inline bool is_broadcast(Way way) { return way == Way::broadcast || way == Way::inline_broadcast; }

struct Disagreement {};

template <class Policy>
struct Work {
  Desks<Policy>& desks;
  int rank;
  RunNumber number;
  Run run;
  Way way;
  bool disagrees = false;  // with whomever it meets

  [[nodiscard]] int others() const { return static_cast<int>(desks.size()) - 1; }
  [[nodiscard]] int reduce_sources() const { return others(); }
  [[nodiscard]] int reduce_source(int i) const { return (rank + 1 + i) % (others() + 1); }
  [[nodiscard]] int consume_sources() const { return is_broadcast(way) ? (rank == 0 ? 0 : 1) : others(); }
  [[nodiscard]] int consume_source(int i) const { return is_broadcast(way) ? 0 : reduce_source(i); }
  static bool expects(int, std::int64_t) { return true; }
  void check_peer(int, int) const {
    if (disagrees) throw Disagreement{};
  }

  void publish(std::int64_t round, int place) {
    if (is_inline_way(way)) {
      if constexpr (requires { desks[0].flags.inline_slots[0].header.payload; }) {
        if (run.publishes) inline_slot(rank).set(value_of(number.first, round, rank));
      }
    } else if (run.publishes) {
      for (int line = 0; line < (way == Way::reduced ? others() : 1); ++line) {
        slot_at(rank, place)[line].set(value_of(number.first, round, rank));
      }
    }
  }
  void reduce_back(std::int64_t round, int place) {
    for (int i = 0; i < others(); ++i) {
      const int peer = reduce_source(i);
      auto& line = slot_at(peer, place)[line_for(rank, peer)];
      require(line.get() == value_of(number.first, round, peer), "a piece of another round");
      line.set(reduced_value(value_of(number.first, round, peer)));
    }
  }
  void consume(std::int64_t round, int place, int peer) {
    if (way != Way::reduced) return check(round, place, peer);
    const std::uint64_t found = slot_at(rank, place)[line_for(peer, rank)].get();
    require(found == reduced_value(value_of(number.first, round, rank)), "an answer of another round");
  }
  static void finish(std::int64_t, int) {}

  void check(std::int64_t round, int place, int peer) {
    std::uint64_t found = 0;
    if (is_inline_way(way)) {
      if constexpr (requires { desks[0].flags.inline_slots[0].header.payload; }) found = inline_slot(peer).get();
    } else {
      found = slot_at(peer, place)[0].get();
    }
    require(found == value_of(number.first, round, peer), "a piece of another round");
  }
  [[nodiscard]] Desk<Policy>& desk(int of) const { return desks[static_cast<std::size_t>(of)]; }
  [[nodiscard]] auto& slot_at(int of, int place) const {
    return place < 2 * Policy::slots ? desk(of).slots[place] : desk(1 - of).slots[place - Policy::slots];
  }
  static int line_for(int reader, int owner) { return reader < owner ? reader : reader - 1; }
  static void require(bool holds, const char* otherwise) { Checker::current().require(holds, otherwise); }
  auto& inline_slot(int of) { return desk(of).flags.inline_slots[number.turn % Policy::inline_slots].header.payload; }
};

template <class Policy>
class Rank {
 public:
  Rank(Desks<Policy>& desks, int rank) : desks_(desks), rank_(rank), steps_(rank, flags_of_all(desks)) {}

  void begin(std::uint64_t call, std::int64_t rounds, Way way) {
    number_ = {.first = call << 4, .call = call, .turn = call};
    run_ = {.span = static_cast<std::uint64_t>(rounds), .rounds = rounds};
    run_.reduces_back = way == Way::reduced;
    run_.alternates = way == Way::alternating;
    run_.in_slots = !is_inline_way(way);
    run_.publishes = !is_broadcast(way) || rank_ == 0;
    run_.hears_all = !is_broadcast(way);
    way_ = way;
    steps_.begin(number_, run_);
  }
  void complete() {
    Work<Policy> work{desks_, rank_, number_, run_, way_};
    bool done = false;
    while (!done) {
      Checker::current().poll_until([&] {
        done = advance(work);
        return done || steps_.moved();
      });
    }
  }
  void run(std::uint64_t call, std::int64_t rounds, Way way) {
    begin(call, rounds, way);
    complete();
  }
  /// Enters a call, comes as far as it gets at once, and gives it up.
  void give_up(std::uint64_t call, std::int64_t rounds, Way way) {
    begin(call, rounds, way);
    Work<Policy> work{desks_, rank_, number_, run_, way_};
    if (!advance(work)) steps_.abandon();
  }
  /// Gives a call up when it meets the other.
  void disagree(std::uint64_t call, std::int64_t rounds, Way way) {
    begin(call, rounds, way);
    Work<Policy> work{desks_, rank_, number_, run_, way_, true};
    try {
      for (;;) Checker::current().poll_until([&] { return advance(work) || steps_.moved(); });
    } catch (const Disagreement&) {
      steps_.abandon();
    }
  }

 private:
  static std::vector<Flags<Policy>*> flags_of_all(Desks<Policy>& desks) {
    std::vector<Flags<Policy>*> flags_of_all;
    for (auto& desk : desks) flags_of_all.push_back(&desk.flags);
    return flags_of_all;
  }
  bool advance(Work<Policy>& work) {
    if (is_inline_way(way_)) return steps_.template advance_single<false>(work);
    // As groups do it: whatever is one round takes the straight way.
    return run_.rounds == 1 && !run_.reduces_back ? steps_.template advance_single<true>(work) : steps_.advance(work);
  }
  Desks<Policy>& desks_;
  int rank_;
  RunNumber number_;
  Run run_;
  Way way_ = Way::one_shot;
  Steps<Policy> steps_;
};

template <class Policy, class Program>
Verdict check(int size, Program program, std::uint64_t states_max = 3'000'000) {
  Checker checker(states_max);
  Desks<Policy> desks(static_cast<std::size_t>(size));
  std::vector<Checker::Program> programs;
  for (int rank = 0; rank < size; ++rank) {
    programs.push_back([&desks, program, rank] {
      Rank<Policy> member(desks, rank);
      program(member, rank);
    });
  }
  return checker.run(programs);
}

}  // namespace tutti::intranode::modelled
