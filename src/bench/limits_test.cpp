// limits_test.cpp: the least work of each verb, and the kernels that do it.
// SPDX-License-Identifier: Apache-2.0
#include "bench/limits.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

namespace tutti::bench {
namespace {

struct Moved {
  std::int64_t read = 0, written = 0;
};
Moved moved_by(Verb verb, int ranks, bool in_place = false) {
  Moved moved;
  for (const Portion& portion : least_work({.verb = verb, .count = 1200, .in_place = in_place}, ranks).portions) {
    moved.read += portion.count * static_cast<std::int64_t>(portion.inputs.size());
    moved.written += portion.count * static_cast<std::int64_t>(portion.outputs.size());
  }
  return moved;
}

TEST(LeastWork, ReadsEveryInputOnceAndWritesEveryOutputOnce) {
  for (const int ranks : {2, 3, 4}) {
    const std::int64_t whole = 1200;
    for (const Verb verb : {Verb::all_reduce, Verb::scan, Verb::all_to_all, Verb::permute}) {
      EXPECT_EQ(moved_by(verb, ranks).read, ranks * whole) << name_of(verb);
      EXPECT_EQ(moved_by(verb, ranks).written, ranks * whole) << name_of(verb);
    }
    EXPECT_EQ(moved_by(Verb::reduce, ranks).written, whole);
    EXPECT_EQ(moved_by(Verb::reduce_scatter, ranks).read, ranks * whole);
    EXPECT_EQ(moved_by(Verb::reduce_scatter, ranks).written, whole);
    EXPECT_EQ(moved_by(Verb::broadcast, ranks).read, whole);
    EXPECT_EQ(moved_by(Verb::broadcast, ranks).written, (ranks - 1) * whole);
    EXPECT_EQ(moved_by(Verb::all_gather, ranks).read, whole);
    EXPECT_EQ(moved_by(Verb::all_gather, ranks).written, ranks * whole);
    EXPECT_EQ(moved_by(Verb::scatter, ranks).written, whole);
  }
  EXPECT_EQ(moved_by(Verb::barrier, 2).read, 0);
}

TEST(LeastWork, StaysWithinItsArrays) {
  for (const BenchVerb& bench_verb : all_verbs()) {
    const Verb verb = bench_verb.verb;
    for (const bool in_place : {false, true}) {
      const LeastWork work = least_work(make_bench_case({.verb = verb, .in_place = in_place}, 4800, 3), 3);
      const Plane& plane = work.plane;
      for (const Portion& portion : work.portions) {
        EXPECT_LE(portion.input_begin + portion.count, plane.input_count) << name_of(verb);
        for (const int i : portion.inputs) EXPECT_LT(i, plane.input_arrays) << name_of(verb);
        const int outputs = plane.output_arrays == 0 ? plane.input_arrays : plane.output_arrays;
        EXPECT_LE(portion.output_begin + portion.count, plane.output_count) << name_of(verb);
        for (const int i : portion.outputs) EXPECT_LT(i, outputs) << name_of(verb);
      }
    }
  }
}

TEST(Stream, SumsWithEitherKindOfStores) {
  constexpr std::int64_t count = 16 * 70 + 5;
  const auto array = [](float value) {
    std::shared_ptr<float> data(static_cast<float*>(std::aligned_alloc(64, (count + 16) / 16 * 64)), std::free);
    for (std::int64_t i = 0; i < count; ++i) data.get()[i] = value * static_cast<float>(i);
    return data;
  };
  for (const Stores stores : {Stores::cached, Stores::non_temporal}) {
    for (const int inputs : {1, 2, 3}) {
      for (const int outputs : {0, 1, 2, 3}) {
        std::vector<std::shared_ptr<float>> in, out;
        Stream stream{.count = count};
        for (int i = 0; i < inputs; ++i)
          stream.inputs.push_back(in.emplace_back(array(static_cast<float>(i + 1))).get());
        for (int i = 0; i < outputs; ++i) stream.outputs.push_back(out.emplace_back(array(0)).get());
        run(stream, {.begin = 16, .end = count}, stores);
        const float sum = static_cast<float>(inputs * (inputs + 1) / 2);
        for (const auto& one : out) {
          EXPECT_EQ(one.get()[15], 0);
          for (std::int64_t i = 16; i < count; ++i) ASSERT_EQ(one.get()[i], sum * static_cast<float>(i));
        }
      }
    }
  }
}

TEST(Limits, NothingIsFasterThanACacheLine) {
  const Limits limits(2);
  const double line = limits.us_of({.verb = Verb::barrier});
  EXPECT_GE(limits.us_of({.count = 2}), line);
  EXPECT_GT(limits.us_of({.count = 1 << 20}), line);
  EXPECT_NE(limits.describe().find("a cache line from core to core"), std::string::npos);
}

}  // namespace
}  // namespace tutti::bench
