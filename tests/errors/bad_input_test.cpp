// bad_input_test.cpp: invalid arguments: a clear error before any byte moves, and the group stays usable.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <latch>
#include <thread>
#include <vector>

#include <tutti/init.hpp>

#include "outcomes.hpp"

namespace tutti::contract {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;
using Kind = Outcome::Kind;

struct BadCall {
  std::string name;
  std::function<void(Group&)> call;
  std::vector<std::string> says;
};

std::vector<BadCall> bad_calls() {
  using Floats = std::vector<float>;
  return {
      {"a root outside the group",
       [](Group& g) {
         Floats x(4);
         g.broadcast(x, {.root = 7});
       },
       {"root 7", "0 to 1"}},
      {"a negative root",
       [](Group& g) {
         Floats x(4);
         g.reduce(x, {.root = -1});
       },
       {"root -1"}},
      {"a destination outside the group",
       [](Group& g) {
         Floats x(4);
         g.send(x, 2);
       },
       {"destination 2", "0 to 1"}},
      {"a source outside the group",
       [](Group& g) {
         Floats x(4);
         g.recv(x, -5);
       },
       {"source -5"}},
      {"an axis that does not exist",
       [](Group& g) {
         Floats x(4), y(8);
         g.all_gather(x, y, {.axis = 1});
       },
       {"axis 1"}},
      {"a mean of integers",
       [](Group& g) {
         std::vector<int> x(4);
         g.all_reduce(x, {.op = Op::mean});
       },
       {"mean", "int32"}},
      {"bits of floats",
       [](Group& g) {
         Floats x(4);
         g.all_reduce(x, {.op = Op::bor});
       },
       {"bor", "float32"}},
      {"an order of complex numbers",
       [](Group& g) {
         std::vector<std::complex<float>> x(4);
         g.all_reduce(x, {.op = Op::max});
       },
       {"max", "complex64"}},
      {"a mean in a scan",
       [](Group& g) {
         Floats x(4);
         g.scan(x, {.op = Op::mean});
       },
       {"mean"}},
      {"a read-only result",
       [](Group& g) {
         const Floats x(4);
         g.all_reduce(x, x);
       },
       {"read-only"}},
      {"a result of another dtype",
       [](Group& g) {
         Floats x(4);
         std::vector<int> y(4);
         g.all_reduce(x, y);
       },
       {"float32", "int32"}},
      {"a result of another shape",
       [](Group& g) {
         Floats x(4), y(5);
         g.all_reduce(x, y);
       },
       {"[4]", "[5]"}},
      {"a gathered result too small",
       [](Group& g) {
         Floats x(4), y(7);
         g.all_gather(x, y);
       },
       {"[8]", "[7]"}},
      {"an array that does not divide",
       [](Group& g) {
         Floats x(5), y(2);
         g.reduce_scatter(x, y);
       },
       {"length 5", "2 ranks"}},
      {"sizes that do not add up",
       [](Group& g) {
         Floats x(5), y(2);
         g.reduce_scatter(x, y, {.sizes = {2, 2}});
       },
       {"4", "5"}},
      {"a negative size",
       [](Group& g) {
         Floats x(5), y(2);
         g.reduce_scatter(x, y, {.sizes = {-1, 6}});
       },
       {"-1", "negative"}},
      {"sizes for another number of ranks",
       [](Group& g) {
         Floats x(5), y(2);
         g.reduce_scatter(x, y, {.sizes = {5}});
       },
       {"1", "2"}},
      {"a part of the input as the result",
       [](Group& g) {
         Floats x(8);
         g.all_reduce(std::span(x).first(6), std::span(x).last(6));
       },
       {"overlap"}},
      {"two pairs with one source",
       [](Group& g) {
         Floats x(4), y(4);
         g.permute(x, y, {{0, 1}, {0, 0}});
       },
       {"source", "0"}},
      {"a pair outside the group",
       [](Group& g) {
         Floats x(4), y(4);
         g.permute(x, y, {{0, 9}});
       },
       {"9"}},
      {"no array at all", [](Group& g) { g.all_reduce(View()); }, {"no"}},
      {"a subgroup with a rank that does not exist",
       [](Group& g) {
         (void)g.subgroup(std::array{0, 5});
       },
       {"5", "0 to 1"}},
      {"a subgroup with a rank twice",
       [](Group& g) {
         (void)g.subgroup(std::array{0, 0});
       },
       {"twice"}},
      {"an empty subgroup", [](Group& g) { (void)g.subgroup(std::vector<int>{}); }, {"empty"}},
      {"an unknown dtype",
       [](Group& g) {
         std::int64_t n = 4;
         Floats x(4);
         g.all_reduce(View(x.data(), static_cast<DType>(20), {&n, 1}));
       },
       {"20 is not the number"}},
      {"a negative count",
       [](Group& g) {
         std::int64_t n = -4;
         Floats x(4);
         g.all_reduce(View(x.data(), DType::float32, {&n, 1}));
       },
       {"-4"}},
      {"a null pointer",
       [](Group& g) {
         std::int64_t n = 4;
         g.all_reduce(View(nullptr, DType::float32, {&n, 1}));
       },
       {"null"}},
      {"memory of a GPU",
       [](Group& g) {
         std::int64_t n = 4;
         Floats x(4);
         try {
           g.all_reduce(View(x.data(), DType::float32, {&n, 1}, Device{Device::Kind::cuda, 0}));
         } catch (const Unsupported& error) {
           throw InvalidArgument(error.what());
         }
       },
       {"CPU"}},
  };
}

TEST(BadInput, IsRefusedByNameAndLeavesTheGroupUsable) {
  const auto world = make_thread_world({.size = 2, .timeout = 20s});
  world->run([](Group& g) {
    for (const BadCall& bad : bad_calls()) {
      const Outcome outcome = outcome_of([&] { bad.call(g); });
      EXPECT_EQ(outcome.kind, Kind::invalid_argument) << bad.name << ": " << outcome.text;
      for (const std::string& word : bad.says) EXPECT_THAT(outcome.text, HasSubstr(word)) << bad.name;
      std::vector<int> x(3, 1);
      g.all_reduce(x);
      EXPECT_EQ(x[2], 2) << "after " << bad.name;
    }
  });
}

TEST(BadInput, AVerbOnAGroupWithoutTheCallerIsRefused) {
  const auto world = make_thread_world({.size = 3, .timeout = 20s});
  world->run([](Group& g) {
    Group pair = g.subgroup(std::array{0, 2});  // rank 1 gets its answer without communication
    if (g.rank() == 1) {
      EXPECT_EQ(pair.rank(), -1);
      const Outcome outcome = outcome_of([&] { pair.barrier(); });
      EXPECT_EQ(outcome.kind, Kind::invalid_argument);
      EXPECT_THAT(outcome.text, HasSubstr("not a member"));
    } else {
      EXPECT_EQ(pair.rank(), g.rank() / 2);
      pair.barrier();
    }
    Group none = g.split(g.rank() == 1 ? -1 : 0);
    EXPECT_EQ(none.valid(), g.rank() != 1);
    if (!none.valid()) {
      EXPECT_EQ(outcome_of([&] { none.barrier(); }).kind, Kind::invalid_argument);
    }
  });
}

TEST(BadInput, ASecondThreadInTheSameGroupIsRefused) {
  const auto world = make_thread_world({.size = 2, .timeout = 20s});
  std::latch refused(1);
  world->run([&](Group& g) {
    if (g.rank() == 1) {
      refused.wait();  // until then rank 0 stays inside its barrier
      g.barrier();
      return;
    }
    std::jthread other([&] {
      Outcome outcome;
      std::vector<int> nothing;
      do {  // it takes a moment until the first thread is inside
        outcome = outcome_of([&] { g.send(nothing, 99); });
      } while (outcome.text.find("destination 99") != std::string::npos);
      EXPECT_EQ(outcome.kind, Kind::invalid_argument) << outcome.text;
      EXPECT_THAT(outcome.text, AllOf(HasSubstr("another thread"), HasSubstr("same group")));
      refused.count_down();
    });
    bool inside = false;
    while (!inside) {  // the other thread's bad send may be inside at this very moment
      const Outcome outcome = outcome_of([&] { g.barrier(); });
      inside = outcome.kind == Kind::fine;
      EXPECT_TRUE(inside || outcome.text.find("another thread") != std::string::npos) << outcome.text;
    }
  });
}

TEST(BadInput, UseAfterLeavingIsRefused) {
  Group world = init();  // alone
  std::vector<float> x(3, 2.0f);
  world.all_reduce(x);
  finalize();
  const Outcome outcome = outcome_of([&] { world.all_reduce(x); });
  EXPECT_EQ(outcome.kind, Kind::invalid_argument);
  EXPECT_THAT(outcome.text, HasSubstr("finalize"));
}

TEST(BadInput, AnUnknownBackendIsNamed) {
  const Outcome outcome = outcome_of([] { (void)init(InitOptions{.backend = "carrier-pigeon"}); });
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("carrier-pigeon"), HasSubstr("native")));
}

}  // namespace
}  // namespace tutti::contract
