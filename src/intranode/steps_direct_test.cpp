// steps_direct_test.cpp: executions that work on the others' arrays in place, in every order of steps of two ranks.
// SPDX-License-Identifier: Apache-2.0
//
// An execution meets first: all leave in their inline slots where their arrays lie. Then they read them there, and a call returns when everyone is
// through: its caller may write the array again at once. On the model's memory, a read that is not over by then is a race.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>

#include "intranode/steps.hpp"
#include "verify/interleave.hpp"

namespace tutti::intranode {
namespace {

using shm::interleave::Checker;
using shm::interleave::ModelAtomics;
using shm::interleave::ModelPlain;
using shm::interleave::Verdict;
using testing::HasSubstr;
using testing::IsEmpty;

struct Model : ModelAtomics {
  static constexpr int inline_slots = 2, slots = 2;
  struct InlineHeader {
    ModelPlain<std::uint64_t> payload;  // stands for where the array lies
  };
};

// What a rank has in common memory.
struct Desk {
  Flags<Model> flags;
  ModelPlain<std::uint64_t> input;  // its caller's
};
using Desks = std::deque<Desk>;

std::uint64_t value_of(std::uint64_t call, int rank) { return call * 10 + static_cast<std::uint64_t>(rank); }

struct Work {
  Desks& desks;
  int rank;
  std::uint64_t call;
  RunNumber number{};
  bool exchanged = false;

  [[nodiscard]] int others() const { return static_cast<int>(desks.size()) - 1; }
  [[nodiscard]] Desk& desk(int of) const { return desks[static_cast<std::size_t>(of)]; }
  [[nodiscard]] static int reduce_sources() { return 0; }
  [[nodiscard]] static int reduce_source(int) { return -1; }
  static void reduce_back(std::int64_t, int) {}
  [[nodiscard]] int consume_sources() const { return exchanged ? 0 : others(); }
  [[nodiscard]] int consume_source(int i) const { return (rank + 1 + i) % (others() + 1); }
  static bool expects(int, std::int64_t) { return true; }
  static void check_peer(int, int) {}

  auto& place(int of) const { return desk(of).flags.inline_slots[number.turn % Model::inline_slots].header.payload; }
  void publish(std::int64_t, int) {
    if (!exchanged) place(rank).set(value_of(call, rank));
  }
  void consume(std::int64_t, int, int peer) {
    require(place(peer).get() == value_of(call, peer), "a place of another call");
  }
  void finish(std::int64_t, int) {
    for (int i = 0; exchanged && i < others(); ++i) {
      const int peer = consume_source(i);
      require(desk(peer).input.get() == value_of(call, peer), "an array of another call");
    }
  }
  static void require(bool holds, const char* otherwise) { Checker::current().require(holds, otherwise); }
};

/// As IntranodeGroup does it; `waits_for_all` false is a mistake that the checker has to find.
void call_once(Steps<Model>& steps, Work work, bool waits_for_all) {
  work.desk(work.rank).input.set(value_of(work.call, work.rank));  // as the caller does before each call
  const auto part = [&](const RunNumber& number, const Run& run, bool ends) {
    work.number = number;
    steps.begin(number, run);
    bool done = false;
    while (!done) {
      Checker::current().poll_until([&] {
        done = steps.advance(work) && (!ends || steps.is_over());
        return done || steps.moved();
      });
    }
  };
  const SequenceNumber first = work.call << 4;
  part({.first = first, .turn = 2 * work.call}, {.publishes = true, .in_slots = false, .hears_all = true}, false);
  work.exchanged = true;
  part({.first = first + 1, .turn = 2 * work.call + 1},
       {.publishes = false, .in_slots = false, .hears_all = false, .after_exchange = true}, waits_for_all);
}

Verdict calls(int size, std::uint64_t count, bool wait_for_all = true) {
  Checker checker;
  Desks desks(static_cast<std::size_t>(size));
  std::vector<Checker::Program> programs;
  for (int rank = 0; rank < size; ++rank) {
    programs.push_back([=, &desks] {
      std::vector<Flags<Model>*> flags_of_all;
      for (Desk& desk : desks) flags_of_all.push_back(&desk.flags);
      Steps<Model> steps(rank, flags_of_all);
      for (std::uint64_t call = 1; call <= count; ++call) {
        call_once(steps, {.desks = desks, .rank = rank, .call = call}, wait_for_all);
      }
      desks[static_cast<std::size_t>(rank)].input.set(0);  // its caller's again
    });
  }
  return checker.run(programs);
}

// All orders of two calls take half a minute: they are tried with TUTTI_SOAK=1.
bool is_soak() { return std::getenv("TUTTI_SOAK") != nullptr; }

TEST(StepsDirect, ArraysAreReadInPlaceBeforeTheirCallersWriteThemAgain) {
  const Verdict verdict = calls(2, is_soak() ? 2 : 1);
  EXPECT_THAT(verdict.failure, IsEmpty());
  EXPECT_GT(verdict.states, 100U) << "hardly anything was tried";
}

TEST(StepsDirect, ACallThatReturnsBeforeAllAreThroughIsFound) {
  EXPECT_THAT(calls(2, 1, false).failure, testing::AnyOf(HasSubstr("a race"), HasSubstr("another call")));
}

}  // namespace
}  // namespace tutti::intranode
