// staged_call_test.cpp: arrays of any layout on an executor of contiguous ones, again and again, in a group of one.
// SPDX-License-Identifier: Apache-2.0
#include "backend/staged_call.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "backend/alone_executor.hpp"

namespace tutti {
namespace {

using testing::ElementsAre;

class Staged : public testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<PreparedCall> prepare(const Request& request) {
    return prepare_on({.facts = &facts, .executor = &executor, .buffers = &pool}, request);
  }
  template <class T>
  static Buffers buffers(const std::vector<T>& from, std::vector<T>& to) {
    return {.input = reinterpret_cast<const std::byte*>(from.data()),
            .output = reinterpret_cast<std::byte*>(to.data())};
  }
  GroupFacts facts{.rank = 0, .size = 1, .id = 1, .world_of = {0}};
  AloneExecutor executor{facts};
  BufferPool pool;
};

TEST_F(Staged, ContiguousArraysGoToTheExecutorAsTheyAre) {
  std::vector<int> in{1, 2}, out(2);
  const auto call = prepare({.verb = Verb::all_reduce, .input = in, .output = out});
  EXPECT_EQ(dynamic_cast<StagedCall*>(call.get()), nullptr);
  EXPECT_TRUE(call->start(buffers(in, out), {}));
  EXPECT_THAT(out, ElementsAre(1, 2));
}

TEST_F(Staged, StridedArraysArePackedAndUnpackedAtEachStart) {
  std::vector<int> in{1, -1, 2, -1}, out(4, 9), other{5, -1, 6, -1};
  const std::int64_t shape[] = {2}, strides[] = {2};
  const auto call = prepare({.verb = Verb::all_reduce,
                             .input = View(in.data(), DType::int32, shape, strides),
                             .output = View(out.data(), DType::int32, shape, strides)});
  EXPECT_TRUE(call->start(buffers(in, out), {}));
  EXPECT_THAT(out, ElementsAre(1, 9, 2, 9));
  EXPECT_TRUE(call->start(buffers(other, out), {}));
  EXPECT_THAT(out, ElementsAre(5, 9, 6, 9));
  EXPECT_THAT(in, ElementsAre(1, -1, 2, -1));
}

TEST_F(Staged, AFactorIsAppliedWithoutTouchingTheInput) {
  std::vector<float> in{1, 2}, out(2);
  const auto call = prepare({.verb = Verb::all_reduce, .input = in, .output = out, .op = Op::premul(0.5)});
  EXPECT_TRUE(call->start(buffers(in, out), {}));
  EXPECT_THAT(out, ElementsAre(0.5f, 1.0f));
  EXPECT_THAT(in, ElementsAre(1.0f, 2.0f));
}

TEST_F(Staged, AResultThatTheCallerHasNoRoomForIsMade) {
  std::vector<int> in{1, 2, 3}, made;
  Request request{.verb = Verb::all_gather, .input = in};
  request.allocate = [&](DType, std::span<const std::int64_t> shape, std::uint8_t) {
    made.resize(static_cast<std::size_t>(shape[0]));
    return View(made);
  };
  const auto call = prepare(request);
  const Buffers buffers{.input = reinterpret_cast<const std::byte*>(in.data()), .allocate = &request.allocate};
  EXPECT_TRUE(call->start(buffers, {}));
  EXPECT_EQ(made, in);
}

TEST_F(Staged, BuffersAreGivenBackForTheNextCall) {
  AlignedBuffer buffer = pool.take();
  std::byte* const memory = buffer.reserve(100);
  pool.give_back(std::move(buffer));
  AlignedBuffer again = pool.take();
  EXPECT_EQ(again.data(), memory);
  EXPECT_EQ(again.capacity(), 100u);
  EXPECT_EQ(pool.take().capacity(), 0u);
}

TEST_F(Staged, AGroupOfOneGetsIdentitiesAndZerosWhereTheVerbSaysSo) {
  std::vector<int> in{4, 5}, out(2, 9);
  EXPECT_TRUE(prepare({.verb = Verb::exscan, .input = in, .output = out})->start(buffers(in, out), {}));
  EXPECT_THAT(out, ElementsAre(0, 0));
  EXPECT_TRUE(
      prepare({.verb = Verb::permute, .input = in, .output = out, .pairs = {{0, 0}}})->start(buffers(in, out), {}));
  EXPECT_THAT(out, ElementsAre(4, 5));
  EXPECT_TRUE(prepare({.verb = Verb::permute, .input = in, .output = out})->start(buffers(in, out), {}));
  EXPECT_THAT(out, ElementsAre(0, 0));
}

}  // namespace
}  // namespace tutti
