// block_layout_test.cpp: how the arrays of a request fall into blocks.
// SPDX-License-Identifier: Apache-2.0
#include "backend/block_layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include <tutti/error.hpp>

namespace tutti {
namespace {

using testing::ElementsAre;

View view_of(std::vector<float>& data, std::vector<std::int64_t> shape) {
  return View(data.data(), DType::float32, shape);
}

BlockLayout layout_at(const Request& request, int rank, int size) {
  BlockLayout layout;
  lay_out(request, rank, size, layout);
  return layout;
}

TEST(BlockLayout, JoinsAlongAnAxis) {
  std::vector<float> x(6);
  const BlockLayout layout = layout_at({.verb = Verb::all_gather, .input = view_of(x, {2, 3}), .axis = 1}, 0, 3);
  EXPECT_THAT(layout.output_shape, ElementsAre(2, 9));
  EXPECT_THAT(layout.output_sizes, ElementsAre(3, 3, 3));
}

TEST(BlockLayout, StacksOnANewFirstAxis) {
  std::vector<float> x(6);
  EXPECT_THAT(layout_at({.verb = Verb::all_gather, .input = view_of(x, {2, 3}), .stack = true}, 0, 4).output_shape,
              ElementsAre(4, 2, 3));
  EXPECT_THAT(layout_at({.verb = Verb::reduce_scatter, .input = view_of(x, {2, 3}), .stack = true}, 0, 2).output_shape,
              ElementsAre(3));
}

TEST(BlockLayout, SplitsBySizes) {
  std::vector<float> x(10);
  const BlockLayout layout =
      layout_at({.verb = Verb::reduce_scatter, .input = view_of(x, {5, 2}), .sizes = {1, 4}}, 1, 2);
  EXPECT_THAT(layout.output_shape, ElementsAre(4, 2));
  EXPECT_THROW(layout_at({.verb = Verb::reduce_scatter, .input = view_of(x, {5, 2})}, 0, 2), InvalidArgument);
}

TEST(BlockLayout, ExchangesBetweenTwoAxes) {
  std::vector<float> x(24);
  const BlockLayout layout =
      layout_at({.verb = Verb::all_to_all, .input = view_of(x, {4, 6}), .axis = 1, .concat_axis = 0}, 0, 2);
  EXPECT_THAT(layout.output_shape, ElementsAre(8, 3));
  EXPECT_THAT(layout.input_sizes, ElementsAre(3, 3));
  EXPECT_THAT(layout.output_sizes, ElementsAre(4, 4));
}

TEST(Slices, AreAdjacentOnlyAlongTheFirstRealAxis) {
  std::vector<float> x(12);
  EXPECT_TRUE((Slices{view_of(x, {4, 3}), 0, {1, 3}}.adjacent()));
  EXPECT_FALSE((Slices{view_of(x, {4, 3}), 1, {1, 2}}.adjacent()));
  EXPECT_TRUE((Slices{view_of(x, {1, 12}), 1, {5, 7}}.adjacent()));
  EXPECT_EQ((Slices{view_of(x, {4, 3}), 1, {1, 2}}.count(1)), 8);
}

}  // namespace
}  // namespace tutti
