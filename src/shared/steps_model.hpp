// steps_model.hpp: for the tests: the flags' protocol on a model of memory, with plain slots in which a race is a failure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "shared/steps.hpp"
#include "shm/interleave.hpp"

namespace tutti::shared::modelled {

using shm::interleave::Checker;
using shm::interleave::ModelAtomics;
using shm::interleave::ModelPlain;
using shm::interleave::ModelWord;
using shm::interleave::Verdict;

struct Model : ModelAtomics {
  static constexpr int doors = 2, slots = 2, lines = 1;  // … of a slot
  static constexpr int all_slots = 4;                    // with those for crossing
  struct Greeting {};
};
struct ModelOfManyDoors : Model {
  static constexpr int doors = 4;  // as they are waited for, too
};
struct ModelOfThree : Model {
  static constexpr int doors = 1, all_slots = 2;
};
struct AnswersOfThree : Model {
  static constexpr int doors = 1, slots = 1, lines = 2, all_slots = 1;
};
struct ModelOfDoors : ModelAtomics {
  static constexpr int doors = 2, slots = 2, lines = 1, all_slots = 2;
  struct Greeting {
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

// One rank's memory. What is answered has a line for each peer, in their order; everything else is in the first.
template <class Policy>
struct Desk {
  Flags<Policy> flags;
  ModelPlain<std::uint64_t> slots[Policy::all_slots][Policy::lines];
};
template <class Policy>
using Desks = std::deque<Desk<Policy>>;

inline std::uint64_t value_of(Stamp first, std::int64_t round, int rank) {
  return first * 100 + static_cast<std::uint64_t>(round) * 10 + static_cast<std::uint64_t>(rank);
}

inline std::uint64_t answer_to(std::uint64_t value) { return value + 5; }

enum class Way { one_shot, crossed, answered, door, door_broadcast, broadcast };

inline bool is_in_door(Way way) { return way == Way::door || way == Way::door_broadcast; }
inline bool is_broadcast(Way way) { return way == Way::broadcast || way == Way::door_broadcast; }

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
  [[nodiscard]] int answer_sources() const { return others(); }
  [[nodiscard]] int answer_source(int i) const { return (rank + 1 + i) % (others() + 1); }
  [[nodiscard]] int take_sources() const { return is_broadcast(way) ? (rank == 0 ? 0 : 1) : others(); }
  [[nodiscard]] int take_source(int i) const { return is_broadcast(way) ? 0 : answer_source(i); }
  static bool expects(int, std::int64_t) { return true; }
  void meet(int, int) const {
    if (disagrees) throw Disagreement{};
  }

  void leave(std::int64_t round, int place) {
    if (is_in_door(way)) {
      if constexpr (requires { desks[0].flags.doors[0].greeting.payload; }) {
        if (run.leaves) door(rank).set(value_of(number.first, round, rank));
      }
    } else if (run.leaves) {
      for (int line = 0; line < (way == Way::answered ? others() : 1); ++line) {
        slot_at(rank, place)[line].set(value_of(number.first, round, rank));
      }
    }
  }
  void answer(std::int64_t round, int place) {
    for (int i = 0; i < others(); ++i) {
      const int peer = answer_source(i);
      auto& line = slot_at(peer, place)[line_for(rank, peer)];
      require(line.get() == value_of(number.first, round, peer), "a piece of another round");
      line.set(answer_to(value_of(number.first, round, peer)));
    }
  }
  void take(std::int64_t round, int place, int peer) {
    if (way != Way::answered) return check(round, place, peer);
    const std::uint64_t found = slot_at(rank, place)[line_for(peer, rank)].get();
    require(found == answer_to(value_of(number.first, round, rank)), "an answer of another round");
  }
  static void finish(std::int64_t, int) {}

  void check(std::int64_t round, int place, int peer) {
    std::uint64_t found = 0;
    if (is_in_door(way)) {
      if constexpr (requires { desks[0].flags.doors[0].greeting.payload; }) found = door(peer).get();
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
  auto& door(int of) { return desk(of).flags.doors[number.turn % Policy::doors].greeting.payload; }
};

template <class Policy>
class Rank {
 public:
  Rank(Desks<Policy>& desks, int rank) : desks_(desks), rank_(rank), steps_(rank, seats(desks)) {}

  void begin(std::uint64_t call, std::int64_t rounds, Way way) {
    number_ = {.first = call << 4, .call = call, .turn = call};
    run_ = {.span = static_cast<std::uint64_t>(rounds), .rounds = rounds};
    run_.answers = way == Way::answered;
    run_.crosses = way == Way::crossed;
    run_.in_slots = !is_in_door(way);
    run_.leaves = !is_broadcast(way) || rank_ == 0;
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
  static std::vector<Flags<Policy>*> seats(Desks<Policy>& desks) {
    std::vector<Flags<Policy>*> seats;
    for (auto& desk : desks) seats.push_back(&desk.flags);
    return seats;
  }
  bool advance(Work<Policy>& work) {
    if (is_in_door(way_)) return steps_.template advance_single<false>(work);
    // As circles do it: whatever is one round takes the straight way.
    return run_.rounds == 1 && !run_.answers ? steps_.template advance_single<true>(work) : steps_.advance(work);
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

}  // namespace tutti::shared::modelled
