// mismatch_test.cpp: ranks whose calls differ all raise within a second, and the error names both calls.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "outcomes.hpp"
#include "store/memory_store.hpp"

namespace tutti::contract {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Kind = Outcome::Kind;

/// Everyone must raise Mismatch with both texts in it; the group must be broken for the same cause afterwards.
void expect_mismatch(int size, const std::function<void(Group&)>& call, const std::string& one,
                     const std::string& other) {
  const auto world = make_thread_world({.size = size, .timeout = std::chrono::seconds(20)});
  std::vector<Outcome> later(static_cast<std::size_t>(size));
  const auto outcomes = outcomes_in(*world, [&](Group& group) {
    Outcome told = outcome_of([&] { call(group); });
    // A rank whose part was over before the mismatch showed learns of it in its next call, or in the one after that: the
    // next may be over, too, before the word is there.
    for (int i = 0; i < 2 && told.kind == Kind::fine; ++i) told = outcome_of([&] { group.barrier(); });
    later[static_cast<std::size_t>(group.rank())] = outcome_of([&] { group.barrier(); });
    if (told.kind == Kind::mismatch) throw Mismatch(told.text);
    throw Error("not a mismatch: " + told.text);
  });
  for (int rank = 0; rank < size; ++rank) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.kind, Kind::mismatch) << "rank " << rank << ": " << outcome.text;
    EXPECT_THAT(outcome.text, AllOf(HasSubstr(one), HasSubstr(other)));
    EXPECT_LT(outcome.seconds, 5.0);
    EXPECT_EQ(later[static_cast<std::size_t>(rank)].kind, Kind::mismatch);
  }
}

class Mismatches : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Mismatches, testing::Values(2, 3, 5));

TEST_P(Mismatches, OfTheVerb) {
  expect_mismatch(
      GetParam(),
      [](Group& g) {
        std::vector<float> x(10);
        g.rank() == 1 ? g.broadcast(x) : g.all_reduce(x);
      },
      "all_reduce #1", "broadcast #1");
}

TEST_P(Mismatches, OfTheDtype) {
  expect_mismatch(
      GetParam(),
      [](Group& g) {
        std::vector<float> x(10);
        std::vector<int> y(10);
        g.rank() == 1 ? g.all_reduce(y) : g.all_reduce(x);
      },
      "float32", "int32");
}

// Each rank knows only what it sends and expects itself; the ranks must not take each other's bytes for more or fewer than they are.
TEST_P(Mismatches, OfWhatAPairExchanges) {
  const int size = GetParam();
  for (const std::int64_t length : {1, 300, 20'000}) {
    for (const std::int64_t expected : {length + 1, length - 1, std::int64_t{0}}) {
      expect_mismatch(
          size,
          [=](Group& g) {
            std::vector<std::int64_t> sizes(static_cast<std::size_t>(size), length), recv_sizes = sizes;
            if (g.rank() == 0) recv_sizes[1] = expected;
            std::vector<float> x(static_cast<std::size_t>(size * length), 1.0f);
            (void)g.all_to_all(x, {.split_sizes = sizes, .recv_sizes = recv_sizes});
          },
          "all_to_all", "rank 0");
    }
  }
}

TEST_P(Mismatches, OfTheCount) {
  expect_mismatch(
      GetParam(),
      [](Group& g) {
        std::vector<float> x(g.rank() == 1 ? 10u : 12u);
        g.all_reduce(x);
      },
      "10", "12");
}

TEST_P(Mismatches, OfTheShapeWhenTheCountIsTheSame) {
  expect_mismatch(
      GetParam(),
      [](Group& g) {
        std::vector<float> x(12);
        const std::int64_t wide[] = {3, 4}, tall[] = {4, 3};
        g.all_reduce(g.rank() == 1 ? View(x.data(), DType::float32, wide) : View(x.data(), DType::float32, tall));
      },
      "of shape (3, 4)", "of shape (4, 3)");
}

TEST_P(Mismatches, OfTheShapeOfCallsThatAreOverWhereTheDifferenceShows) {
  expect_mismatch(
      GetParam(),
      [](Group& g) {
        std::vector<float> x(12);
        const std::int64_t wide[] = {3, 4}, tall[] = {4, 3};
        // The root has sent, and returned, when the others find out.
        if (g.rank() == 1) g.broadcast(View(x.data(), DType::float32, wide), {.root = 1});
        if (g.rank() != 1) g.broadcast(View(x.data(), DType::float32, tall), {.root = 1});
      },
      "of shape (3, 4)", "of shape (4, 3)");
}

TEST_P(Mismatches, OfCountsOnTwoSidesOfAnAlgorithmsThreshold) {
  expect_mismatch(
      GetParam(),
      [](Group& g) {
        std::vector<float> x(g.rank() == 0 ? 4u : 4'000'000u);
        g.all_reduce(x);
      },
      "4", "4000000");
}

TEST_P(Mismatches, OfTheRoot) {
  expect_mismatch(
      GetParam(),
      [](Group& g) {
        std::vector<float> x(10);
        g.broadcast(x, {.root = g.rank() == 0 ? 1 : 0});
      },
      "root 0", "root 1");
}

TEST_P(Mismatches, OfTheReduction) {
  expect_mismatch(
      GetParam(),
      [](Group& g) {
        std::vector<float> x(10);
        g.all_reduce(x, {.op = g.rank() == 0 ? Op::max : Op::sum});
      },
      "max", "sum");
}

TEST_P(Mismatches, OfTheFactor) {
  expect_mismatch(
      GetParam(),
      [](Group& g) {
        std::vector<float> x(10);
        g.all_reduce(x, {.op = Op::premul(g.rank() == 0 ? 0.5 : 0.25)});
      },
      "factor 0.5", "factor 0.25");
}

TEST_P(Mismatches, OfTheOrder) {
  expect_mismatch(
      GetParam(),
      [](Group& g) {
        std::vector<float> x(10);
        std::vector<double> y(20);
        if (g.rank() == 0) {
          g.all_reduce(x);
          g.all_reduce(y);
        } else {
          g.all_reduce(y);
          g.all_reduce(x);
        }
      },
      "float32", "float64");
}

TEST_P(Mismatches, OfThePairsOfAPermutation) {
  expect_mismatch(
      GetParam(),
      [](Group& g) {
        std::vector<float> x(10), y(10);
        g.permute(x, y, g.rank() == 0 ? Pairs{{0, 1}} : Pairs{{1, 0}});
      },
      "pairs [(0, 1)]", "pairs [(1, 0)]");
}

TEST_P(Mismatches, WhereARanksCallHadAlreadyReturned) {
  // The root of a small broadcast is through at once; the others find out that they wanted something else.
  expect_mismatch(
      GetParam(),
      [](Group& g) {
        std::vector<float> x(10);
        std::vector<double> y(10);
        g.rank() == 0 ? g.broadcast(x) : g.broadcast(y);
      },
      "float32", "float64");
}

TEST_P(Mismatches, WhereTwoRanksEachTakeTheOtherForTheReceiver) {
  // Every rank takes itself for a leaf of a reduce to another root: all send, none receives.
  expect_mismatch(
      GetParam(),
      [](Group& g) {
        std::vector<float> x(10);
        g.reduce(x, {.root = (g.rank() + 1) % g.size()});
      },
      "reduce #1", "root");
}

TEST(Mismatch, OfAMessageNamesBothSidesAndFailsItsReceiveAlone) {
  const auto world = make_thread_world({.size = 2, .timeout = std::chrono::seconds(20)});
  world->run([](Group& g) {
    std::vector<float> x(10);
    std::vector<double> y(5, -1);  // as many bytes
    std::vector<float> small(9, -1);
    if (g.rank() == 0) {
      g.send(x, 1);
      g.send(x, 1);
    } else {
      const Outcome dtype = outcome_of([&] { g.recv(y, 0); }), room = outcome_of([&] { g.recv(small, 0); });
      EXPECT_EQ(dtype.kind, Kind::mismatch) << dtype.text;
      EXPECT_THAT(dtype.text, AllOf(HasSubstr("recv (float64 × 5, tag 0) from rank 0"), HasSubstr("float32 × 10")));
      EXPECT_EQ(room.kind, Kind::mismatch) << room.text;
      EXPECT_THAT(room.text, AllOf(HasSubstr("recv (float32 × 9"), HasSubstr("float32 × 10")));
      EXPECT_EQ(y[0], -1);
      EXPECT_EQ(small[0], -1);
    }
    g.barrier();
  });
}

TEST(Mismatch, BreaksOnlyItsOwnGroup) {
  const auto world = make_thread_world({.size = 3, .timeout = std::chrono::seconds(20)});
  world->run([](Group& g) {
    Group other = g.split(0);
    const Outcome outcome = outcome_of([&] {
      std::vector<float> x(g.rank() == 1 ? 10u : 12u);
      other.all_reduce(x);
    });
    EXPECT_EQ(outcome.kind, Kind::mismatch) << outcome.text;
    std::vector<float> y(4, 1.0f);
    g.all_reduce(y);
    EXPECT_EQ(y[0], 3.0f);
  });
}

// A difference that is found when the ranks leave makes the whole process fail: these programs run in a process of their own.
class LateMismatch : public testing::Test {
 public:
  static inline const WorldOptions options{.size = 2, .timeout = std::chrono::seconds(20)};

 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

/// Ends this process as a program that does not catch `outcome`.
[[noreturn]] void end_with(const Outcome& outcome) {
  if (outcome.kind == Kind::fine) std::exit(EXIT_SUCCESS);
  std::fprintf(stderr, "%s\n", outcome.text.c_str());
  std::exit(EXIT_FAILURE);
}

void broadcast_after_a_member_left(const std::string& backend) {
  const std::shared_ptr<Store> store = memory_store();
  std::thread leaver([&] { join_as_thread(LateMismatch::options, 1, store, backend); });
  Outcome outcome;
  {
    Group group = join_as_thread(LateMismatch::options, 0, store, backend);
    leaver.join();
    std::vector<float> x(10);
    outcome = outcome_of([&] { group.broadcast(x); });
  }
  end_with(outcome);
}

TEST_F(LateMismatch, OfACallThatWaitsForNobodyAndIsMadeAfterAMemberLeftIsNotSilent) {
  // Once rank 1 is gone, rank 0 knows how many calls it took part in. The root of a small broadcast is through at once.
  for (const std::string backend : {"shm", "native"}) {
    EXPECT_EXIT(broadcast_after_a_member_left(backend), testing::ExitedWithCode(EXIT_FAILURE),
                "every rank of a group must make the same calls in the same order")
        << backend;
  }
}

void differ_in_the_first_of_many_gathers() {
  const std::shared_ptr<Store> store = memory_store();
  std::barrier ready(2);
  const auto live = [&](int rank) {
    Group group = join_as_thread(LateMismatch::options, rank, store, "native");
    ready.arrive_and_wait();
    std::vector<float> floats;
    std::vector<double> doubles;
    rank == 0 ? group.gather(floats, floats) : group.gather(doubles, doubles);
    for (int i = 0; i < 300; ++i) group.gather(floats, floats);
  };
  {
    const std::jthread other(live, 1);
    live(0);
  }
  end_with({});
}

TEST_F(LateMismatch, FartherBackThanCallsAreComparedOneByOneIsNotSilent) {
  // Over TCP arrays of no elements send nothing, and only the goodbyes can tell; ranks send each other their latest 256 calls.
  EXPECT_EXIT(differ_in_the_first_of_many_gathers(), testing::ExitedWithCode(EXIT_FAILURE),
              "did not make the same calls");
}

}  // namespace
}  // namespace tutti::contract
