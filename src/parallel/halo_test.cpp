// halo_test.cpp: which cells go where, and arrays that have no margins.
// SPDX-License-Identifier: Apache-2.0
#include "parallel/halo.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include <tutti/error.hpp>

namespace tutti::parallel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::array<int, 60> cells{};

View grid() {
  static const std::array<std::int64_t, 2> shape{6, 10};
  return View(cells.data(), DType::int32, shape);
}

std::int64_t offset_of(const View& part) { return static_cast<int*>(part.data()) - cells.data(); }

TEST(Halo, sends_own_cells_and_fills_the_margins_beside_them) {
  const auto axes = halo_axes(grid(), 2, {.halo = {1, 2}});
  const Slabs rows = slabs_of(grid(), axes[0], 0, {3, 4}), columns = slabs_of(grid(), axes[1], 1, {5, nobody});
  EXPECT_EQ(offset_of(rows.sent[0].part), 10);
  EXPECT_EQ(offset_of(rows.sent[1].part), 40);
  EXPECT_EQ(offset_of(rows.filled[0].part), 0);
  EXPECT_EQ(offset_of(rows.filled[1].part), 50);
  EXPECT_THAT(columns.sent[0].part.shape(), ElementsAre(6, 2));
  EXPECT_EQ(offset_of(columns.sent[0].part), 2);
  EXPECT_EQ(offset_of(columns.sent[1].part), 6);
  EXPECT_EQ(offset_of(columns.filled[1].part), 8);
  EXPECT_EQ(columns.filled[1].peer, nobody);
  // What one rank sends upwards fills the lower margin of the rank above it.
  EXPECT_EQ(rows.sent[1].tag, rows.filled[0].tag);
  EXPECT_NE(rows.sent[0].tag, rows.sent[1].tag);
  EXPECT_NE(rows.sent[0].tag, columns.sent[0].tag);
  EXPECT_GT(rows.sent[0].tag, tag_max);
}

TEST(Halo, takes_axes_from_the_end) {
  const auto axes = halo_axes(grid(), 1, {.axes = {-1}});
  EXPECT_EQ(axes[0].axis, 1);
}

TEST(Halo, refuses_what_does_not_fit) {
  const auto refused = [](HaloOptions options, std::size_t mesh_axes, const char* why) {
    EXPECT_THAT([&] { halo_axes(grid(), mesh_axes, options); }, ThrowsMessage<InvalidArgument>(HasSubstr(why)));
  };
  refused({.halo = {3}}, 2, "no room for margins of width 3");
  refused({.halo = {-1}}, 2, "no room");
  refused({.halo = {1, 1, 1}}, 2, "3 widths were given for 2 axes");
  refused({}, 3, "axis 2 does not exist");
  refused({.axes = {0, 0}}, 2, "given twice");
  refused({.axes = {0}}, 2, "1 axes of the array were given");
  const std::array<std::int64_t, 2> shape{6, 10};
  EXPECT_THAT([&] { halo_axes(View::read_only(cells.data(), DType::int32, shape), 2, {}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("cannot be written")));
}

}  // namespace
}  // namespace tutti::parallel
