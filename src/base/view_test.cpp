// view_test.cpp: views that are right, and the reasons why others are refused.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/view.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include <tutti/error.hpp>

#include "base/extent.hpp"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Extents = std::vector<std::int64_t>;

std::array<float, 24> memory{};

TEST(View, of_other_elements_than_numbers_has_their_size_or_their_axes) {
  struct Point {
    double x, y;
  };
  enum class Color : std::uint16_t { red };
  const View points(std::span<Point>(static_cast<Point*>(nullptr), 0));
  EXPECT_EQ(points.dtype(), struct_of(16));
  const std::vector<Color> colors(3);
  EXPECT_EQ(View(colors).dtype(), DType::uint16);
  std::vector<std::array<std::array<float, 3>, 2>> nested(4);
  EXPECT_THAT(View(nested).shape(), ElementsAre(4, 2, 3));
  EXPECT_THAT(View(nested).strides(), ElementsAre(6, 3, 1));
  EXPECT_TRUE(View(nested).is_contiguous());
  struct Large {
    char bytes[1001];
  };
  std::vector<Large> large(2);
  EXPECT_THAT(View(large).shape(), ElementsAre(2, 1001));
  EXPECT_EQ(View(large).dtype(), DType::uint8);
}

TEST(View, of_a_pointer_knows_its_dtype) {
  const View block = view(memory.data(), {2, 3}, {12, 4});
  EXPECT_EQ(block.dtype(), DType::float32);
  EXPECT_THAT(block.shape(), ElementsAre(2, 3));
  EXPECT_THAT(block.strides(), ElementsAre(12, 4));
  EXPECT_FALSE(block.is_read_only());
  const float* const fixed = memory.data();
  EXPECT_TRUE(view(fixed, {24}).is_read_only());
  std::vector<std::array<double, 3>> rows(4);
  EXPECT_THAT(view(rows.data(), {2, 2}, {2, 1}).strides(), ElementsAre(6, 3, 1));
}

TEST(View, of_a_vector_has_one_axis_and_may_be_written) {
  std::vector<double> values(5);
  const View view = values;
  EXPECT_TRUE(view.present());
  EXPECT_EQ(view.data(), values.data());
  EXPECT_EQ(view.dtype(), DType::float64);
  EXPECT_EQ(view.count(), 5);
  EXPECT_EQ(view.bytes(), 40);
  EXPECT_TRUE(view.is_contiguous());
  EXPECT_FALSE(view.is_read_only());
}

TEST(View, of_a_const_range_is_read_only) {
  const std::vector<int> values(3);
  EXPECT_TRUE(View(values).is_read_only());
  EXPECT_TRUE(View::read_only(values.data(), DType::int32, Extents{3}).is_read_only());
}

TEST(View, of_nothing_is_not_present_and_has_no_elements) {
  EXPECT_FALSE(View().present());
  EXPECT_EQ(View().count(), 0);
}

TEST(View, without_axes_holds_one_element) {
  const View scalar(memory.data(), DType::float32, Extents{});
  EXPECT_EQ(scalar.count(), 1);
  EXPECT_TRUE(scalar.is_contiguous());
}

TEST(View, without_strides_is_row_major) {
  const View view(memory.data(), DType::float32, Extents{2, 3, 4});
  EXPECT_THAT(view.strides(), ElementsAre(12, 4, 1));
  EXPECT_TRUE(view.is_contiguous());
  EXPECT_EQ(view.bytes(), 96);
}

TEST(View, is_contiguous_whatever_the_strides_of_axes_of_length_one) {
  EXPECT_TRUE(View(memory.data(), DType::float32, Extents{1, 4}, Extents{77, 1}).is_contiguous());
  EXPECT_FALSE(View(memory.data(), DType::float32, Extents{2, 4}, Extents{5, 1}).is_contiguous());
  EXPECT_FALSE(View(memory.data(), DType::float32, Extents{4}, Extents{-1}).is_contiguous());
  EXPECT_TRUE(View(memory.data(), DType::float32, Extents{0, 4}, Extents{9, 9}).is_contiguous());
}

TEST(View, a_slice_starts_where_it_says) {
  const View view(memory.data(), DType::float32, Extents{4, 6});
  const View part = view.slice(0, 1, 2).slice(1, 2, 3);
  EXPECT_EQ(part.data(), memory.data() + 8);
  EXPECT_THAT(part.shape(), ElementsAre(2, 3));
  EXPECT_THAT(part.strides(), ElementsAre(6, 1));
  EXPECT_EQ(view.slice(0, 4, 0).count(), 0);
}

TEST(View, a_slice_of_a_reversed_axis_counts_from_its_own_start) {
  const View reversed(memory.data() + 23, DType::float32, Extents{24}, Extents{-1});
  EXPECT_EQ(reversed.slice(0, 3, 2).data(), memory.data() + 20);
}

TEST(View, a_slice_outside_is_refused) {
  const View view(memory.data(), DType::float32, Extents{4, 6});
  EXPECT_THROW((void)view.slice(2, 0, 1), InvalidArgument);
  EXPECT_THROW((void)view.slice(-1, 0, 1), InvalidArgument);
  EXPECT_THROW((void)view.slice(0, -1, 1), InvalidArgument);
  EXPECT_THROW((void)view.slice(0, 0, -1), InvalidArgument);
  EXPECT_THROW((void)view.slice(0, 3, 2), InvalidArgument);
  EXPECT_THROW((void)view.slice(0, 3, std::numeric_limits<std::int64_t>::max()), InvalidArgument);
}

TEST(View, may_be_null_only_without_elements) {
  EXPECT_EQ(View(nullptr, DType::float32, Extents{3, 0}).count(), 0);
  EXPECT_THAT([] { View(nullptr, DType::float32, Extents{3}); }, ThrowsMessage<InvalidArgument>(HasSubstr("null")));
}

TEST(View, refuses_negative_extents) {
  EXPECT_THAT(
      [] {
        View(memory.data(), DType::float32, Extents{3, -1});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("axis 1 of shape [3, -1] is negative")));
}

TEST(View, refuses_more_than_16_axes) {
  EXPECT_EQ(View(memory.data(), DType::float32, Extents(16, 1)).axes(), 16);
  EXPECT_THAT([] { View(memory.data(), DType::float32, Extents(17, 1)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("17 axes")));
}

TEST(View, refuses_strides_that_do_not_fit_the_axes) {
  EXPECT_THAT(
      [] {
        View(memory.data(), DType::float32, Extents{3, 2}, Extents{1});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("1 strides for 2 axes")));
}

TEST(View, refuses_more_bytes_than_64_bits_count) {
  constexpr std::int64_t large = std::int64_t{1} << 31;
  EXPECT_THROW(View(memory.data(), DType::float32, Extents{large, large}), InvalidArgument);
  EXPECT_EQ(View(memory.data(), DType::uint8, Extents{large, large}).count(), large * large);
  EXPECT_THROW(View(memory.data(), DType::uint8, Extents{large, large, 2}), InvalidArgument);
  EXPECT_EQ(View(memory.data(), DType::uint8, Extents{large, large, large, 0}).count(), 0);
}

TEST(View, refuses_strides_that_reach_beyond_64_bits) {
  constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max() / 4;
  EXPECT_THROW(View(memory.data(), DType::float32, Extents{3}, Extents{far}), InvalidArgument);
  EXPECT_THROW(View(memory.data(), DType::float32, Extents{3}, Extents{-far}), InvalidArgument);
  EXPECT_THROW(View(memory.data(), DType::uint8, Extents{3, 4}, Extents{far, far}), InvalidArgument);
}

// The offsets of all elements, one by one.
bool meets_one_twice(const Extents& shape, const Extents& strides) {
  std::set<std::int64_t> met;
  Extents index(shape.size(), 0);
  for (;;) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) offset += index[i] * strides[i];
    if (!met.insert(offset).second) return true;
    std::size_t axis = 0;
    while (axis < shape.size() && ++index[axis] == shape[axis]) index[axis++] = 0;
    if (axis == shape.size()) return false;
  }
}

// Every element against every other one.
bool meet_by_trying(const View& a, const View& b) {
  const auto addresses = [](const View& view) {
    std::vector<std::uintptr_t> found;
    for (std::int64_t n = 0; n < view.count(); ++n) {
      std::int64_t rest = n, offset = 0;
      for (std::size_t i = view.shape().size(); i-- > 0; rest /= view.shape()[i])
        offset += rest % view.shape()[i] * view.strides()[i];
      const auto begin = reinterpret_cast<std::uintptr_t>(view.data()) +
                         static_cast<std::uintptr_t>(offset * static_cast<std::int64_t>(size_of(view.dtype())));
      for (std::size_t byte = 0; byte < size_of(view.dtype()); ++byte) found.push_back(begin + byte);
    }
    return found;
  };
  const auto mine = addresses(a), theirs = addresses(b);
  return std::ranges::any_of(mine,
                             [&](std::uintptr_t each) { return std::ranges::find(theirs, each) != theirs.end(); });
}

TEST(View, overlaps_another_by_elements_not_by_extents) {
  std::array<float, 64> matrix{};
  const Extents column{8, 1}, strides{8, 1};
  const View left(matrix.data(), DType::float32, column, strides),
      right(matrix.data() + 7, DType::float32, column, strides);
  EXPECT_FALSE(overlap(left, right));
  EXPECT_TRUE(overlap(left, left));
  std::array<std::byte, 4096> ground{};
  std::uint64_t state = 7;
  const auto below = [&](std::uint64_t n) {
    return std::int64_t((state = state * 6364136223846793005u + 1442695040888963407u) >> 33) % std::int64_t(n);
  };
  int meeting = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto draw = [&] {
      Extents shape, steps;
      for (std::int64_t axes = below(4); axes > 0; --axes) {
        shape.push_back(1 + below(4));
        steps.push_back(below(15) - 7);
      }
      const DType dtype = below(3) == 0 ? DType::int16 : DType::float32;
      return View(ground.data() + 2048 + (below(40) - 20) * 2, dtype, shape, steps);
    };
    const View a = draw(), b = draw();
    ASSERT_EQ(overlap(a, b), meet_by_trying(a, b)) << "case " << i;
    meeting += overlap(a, b) ? 1 : 0;
  }
  EXPECT_GT(meeting, 500);
  EXPECT_LT(meeting, 2500);
}

TEST(View, knows_whether_it_overlaps_itself) {
  std::mt19937 random(4);
  int overlapping = 0;
  for (int i = 0; i < 4000; ++i) {
    Extents shape, strides;
    for (std::size_t axis = 1 + random() % 4; axis > 0; --axis) {
      shape.push_back(1 + random() % 5);
      strides.push_back(static_cast<std::int64_t>(random() % 41) - 20);
    }
    const bool expected = meets_one_twice(shape, strides);
    overlapping += expected ? 1 : 0;
    std::vector<float> far(800);  // 4 axes of 5, strides of 20 at most
    EXPECT_EQ(overlaps_itself(View(far.data() + 400, DType::float32, shape, strides)), expected)
        << testing::PrintToString(shape) << " " << testing::PrintToString(strides);
  }
  EXPECT_GT(overlapping, 400);
  EXPECT_LT(overlapping, 3600);
  EXPECT_FALSE(overlaps_itself(View(memory.data(), DType::float32, Extents{0, 3}, Extents{0, 0})));
}

TEST(View, refuses_unknown_dtypes_and_devices) {
  EXPECT_THROW(View(memory.data(), static_cast<DType>(17), Extents{1}), InvalidArgument);
  EXPECT_THROW(View(memory.data(), DType::int8, Extents{1}, Device{static_cast<Device::Kind>(9), 0}), InvalidArgument);
  EXPECT_THROW(View(memory.data(), DType::int8, Extents{1}, Device{Device::Kind::cuda, -1}), InvalidArgument);
}

}  // namespace
}  // namespace tutti
