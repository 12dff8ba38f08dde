// pack_test.cpp: every layout against a walk over all indices.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include <tutti/error.hpp>

#include "base/random.hpp"
#include "kernel/kernel.hpp"

namespace tutti::kernel {
namespace {

using Extents = std::vector<std::int64_t>;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Offsets of all elements in row-major order, by definition.
Extents offsets_of(const Extents& shape, const Extents& strides) {
  Extents offsets = {0};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    Extents next;
    for (const std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < shape[axis]; ++i) next.push_back(offset + i * strides[axis]);
    }
    offsets = next;
  }
  return offsets;
}

struct StridedLayout {
  Extents shape, strides, offsets;
  std::int64_t first = 0, span = 0;  // where element 0 lies in a buffer of `span` elements that holds them all
};

StridedLayout layout(Extents shape, Extents strides) {
  StridedLayout result{std::move(shape), std::move(strides), {}, 0, 0};
  result.offsets = offsets_of(result.shape, result.strides);
  if (result.offsets.empty()) return result;
  const auto [lowest, highest] = std::ranges::minmax(result.offsets);
  result.first = -lowest;
  result.span = highest - lowest + 1;
  return result;
}

std::vector<std::byte> noise(std::size_t bytes) {
  Random random(bytes);
  std::vector<std::byte> data(bytes);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random.next());
  return data;
}

void check_both_ways(const StridedLayout& l, DType dtype) {
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  const auto count = static_cast<std::int64_t>(l.offsets.size());
  auto strided = noise(std::size_t(l.span * size) + 1);
  std::byte* first = strided.data() + l.first * size;
  const View view(first, dtype, l.shape, l.strides);

  std::vector<std::byte> packed(std::size_t(count * size) + 1);
  pack(view, packed.data());
  for (std::int64_t i = 0; i < count; ++i) {
    ASSERT_TRUE(std::equal(&packed[std::size_t(i * size)], &packed[std::size_t(i * size)] + size,
                           first + l.offsets[std::size_t(i)] * size))
        << name_of(dtype) << ", element " << i;
  }
  if (std::ranges::find(l.strides, 0) != l.strides.end()) return;  // refused, in a test of its own

  const auto source = noise(packed.size() + 7);
  auto expected = strided;
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy_n(&source[std::size_t(i * size)], size, expected.data() + (l.first + l.offsets[std::size_t(i)]) * size);
  }
  unpack(source.data(), view);
  ASSERT_EQ(strided, expected) << name_of(dtype);  // the gaps are as they were
}

TEST(Pack, and_unpack_are_right_for_all_kinds_of_layouts_and_element_sizes) {
  const std::vector<StridedLayout> layouts = {
      layout({}, {}),
      layout({0}, {1}),
      layout({3, 0, 2}, {2, 2, 1}),
      layout({1}, {5}),
      layout({24}, {1}),
      layout({24}, {-1}),
      layout({24}, {3}),
      layout({6, 4}, {4, 1}),
      layout({6, 4}, {7, 1}),
      layout({6, 4}, {1, 6}),
      layout({6, 4}, {-4, 1}),
      layout({6, 4}, {4, -1}),
      layout({6, 4}, {-4, -1}),
      layout({100, 70}, {1, 100}),
      layout({33, 32, 31}, {1, 33, 33 * 32}),
      layout({5, 3, 4, 2}, {2, 40, 10, 1}),
      layout({2, 1, 3, 1, 4}, {12, 99, 4, -7, 1}),
      layout({4, 3}, {1, 0}),
      layout({3, 4}, {0, 1}),
      layout({3, 4}, {0, 0}),
      layout({2, 2, 2, 2, 2, 2, 2, 2}, {1, 2, 4, 8, 16, 32, 64, 128}),
      layout(Extents(16, 1), Extents(16, 3)),
  };
  for (const DType dtype : {DType::int8, DType::bfloat16, DType::float32, DType::complex64, DType::complex128}) {
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      SCOPED_TRACE(i);
      ASSERT_NO_FATAL_FAILURE(check_both_ways(layouts[i], dtype));
    }
  }
}

TEST(Pack, is_right_for_random_permutations_with_gaps_and_reversals) {
  Random random(2024);
  for (int round = 0; round < 300; ++round) {
    const auto axes = static_cast<std::size_t>(random.between(1, 5));
    Extents shape(axes);
    Extents strides(axes);
    Extents order(axes);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random);
    std::int64_t stride = random.between(1, 2);
    for (const std::int64_t axis : order) {
      shape[std::size_t(axis)] = random.between(1, 7);
      strides[std::size_t(axis)] = random.chance(0.3) ? -stride : stride;
      stride = stride * shape[std::size_t(axis)] + (random.chance(0.3) ? random.between(0, 3) : 0);
    }
    SCOPED_TRACE(round);
    ASSERT_NO_FATAL_FAILURE(check_both_ways(layout(shape, strides), DType::float32));
  }
}

TEST(Copy, moves_between_two_layouts) {
  std::vector<int> from(12);
  std::iota(from.begin(), from.end(), 0);
  std::vector<int> to(12, -1);
  copy(View(to.data(), DType::int32, Extents{3, 4}, Extents{1, 3}), View(from.data(), DType::int32, Extents{3, 4}));
  EXPECT_EQ(to, (std::vector<int>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
}

TEST(Copy, refuses_different_shapes_and_dtypes) {
  std::vector<int> memory(12);
  const View view(memory.data(), DType::int32, Extents{3, 4});
  EXPECT_THROW(copy(view, View(memory.data(), DType::int32, Extents{4, 3})), InvalidArgument);
  EXPECT_THROW(copy(view, View(memory.data(), DType::float32, Extents{3, 4})), InvalidArgument);
}

TEST(Unpack, refuses_views_it_may_not_or_cannot_write) {
  std::vector<int> memory(12);
  EXPECT_THAT(
      [&] {
        unpack(memory.data(), View(memory.data(), DType::int32, Extents{3, 4}, Extents{0, 1}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("axis 0 has stride 0")));
  EXPECT_THAT([&] { unpack(memory.data(), View::read_only(memory.data(), DType::int32, Extents{12})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("read-only")));
  EXPECT_THROW(unpack(memory.data(), View()), InvalidArgument);
  EXPECT_THROW(pack(View(memory.data(), DType::int32, Extents{1}, Device{Device::Kind::cuda, 0}), memory.data()),
               InvalidArgument);
}

}  // namespace
}  // namespace tutti::kernel
