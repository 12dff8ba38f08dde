// strided_test.cpp: moves that are planned for a GPU, carried out here one unit after the other.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/strided.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace tutti::cuda {
namespace {

/// As the kernel does it.
void carry_out(const StridedMove& m) {
  for (std::int64_t i = 0; i < m.count; ++i) {
    std::int64_t rest = i, to = 0, from = 0;
    for (int axis = m.axes - 1; axis >= 0; --axis) {
      const std::int64_t at = rest % m.extent[axis];
      rest /= m.extent[axis];
      to += at * m.to_stride[axis];
      from += at * m.from_stride[axis];
    }
    std::memcpy(m.to + to, m.from + from, static_cast<std::size_t>(m.unit));
  }
}

struct Case {
  std::vector<std::int64_t> shape, strides;
};

template <class T>
void expect_packed(const Case& c) {
  alignas(16) static T memory[4096];
  std::iota(std::begin(memory), std::end(memory), T{1});
  const View from = View::read_only(memory, dtype_of<T>, c.shape, c.strides);
  std::vector<T> packed(static_cast<std::size_t>(from.count()) + 1, T{77}), expected;
  carry_out(plan_move(View(packed.data(), dtype_of<T>, c.shape), from));
  std::vector<std::int64_t> at(c.shape.size(), 0);
  for (std::int64_t i = 0; i < from.count(); ++i) {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) place += at[axis] * c.strides[axis];
    expected.push_back(memory[place]);
    for (std::size_t axis = at.size(); axis-- > 0;) {
      if (++at[axis] < c.shape[axis]) break;
      at[axis] = 0;
    }
  }
  EXPECT_EQ(packed.back(), T{77}) << "written beyond the end";
  packed.pop_back();
  EXPECT_EQ(packed, expected);
}

const std::vector<Case> cases = {
    {{7}, {2}},
    {{7}, {1}},
    {{4, 6}, {10, 1}},
    {{6, 4}, {1, 6}},
    {{3, 1, 5}, {20, 99, 2}},
    {{2, 3, 4}, {12, 4, 1}},
    {{2, 3, 4}, {60, 10, 2}},
    {{4, 8}, {16, 1}},
    {{5, 16}, {32, 1}},
    {{3, 5}, {0, 1}},
    {{1}, {7}},
    {{}, {}},
};

TEST(StridedMove, PacksEveryLayoutOfEverySizeOfElement) {
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.shape) + " strides " + testing::PrintToString(c.strides));
    expect_packed<std::uint8_t>(c);
    expect_packed<std::int16_t>(c);
    expect_packed<float>(c);
    expect_packed<double>(c);
  }
}

TEST(StridedMove, TakesTheLargestUnitThatRunsAndAlignmentAllow) {
  alignas(16) static float memory[256];
  alignas(16) static float packed[64];
  const std::vector<std::int64_t> shape = {4, 8}, strides = {16, 1};
  const View to(packed, DType::float32, shape);
  const StridedMove wide = plan_move(to, View(memory, DType::float32, shape, strides));
  EXPECT_EQ(wide.unit, 16);
  EXPECT_EQ(wide.count, 8);
  EXPECT_EQ(plan_move(to, View(memory + 1, DType::float32, shape, strides)).unit, 4) << "it begins 4 bytes too late";
  EXPECT_EQ(plan_move(to, View(memory + 2, DType::float32, shape, strides)).unit, 8);
}

TEST(StridedMove, SeesAContiguousArrayAsOneRun) {
  alignas(16) static float memory[64], packed[64];
  const std::vector<std::int64_t> shape = {4, 4, 4};
  const StridedMove move = plan_move(View(packed, DType::float32, shape), View(memory, DType::float32, shape));
  EXPECT_EQ(move.axes, 1);
  EXPECT_EQ(move.unit, 16);
  EXPECT_EQ(move.count, 16);
}

}  // namespace
}  // namespace tutti::cuda
