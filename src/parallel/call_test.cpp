// call_test.cpp: calls as values: their text, the shapes of their results, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "parallel/call.hpp"

#include <gtest/gtest.h>

#include <tutti/error.hpp>

namespace tutti::parallel {
namespace {

using Shape = std::vector<std::int64_t>;

TEST(Call, AnyCallIsTheSameAfterItsTextWasRead) {
  const std::vector<Call> calls = {
      {.verb = Verb::all_reduce},
      {.verb = Verb::all_reduce, .op = Op::premul(0.1)},
      {.verb = Verb::reduce, .op = Op::max, .root = 3},
      {.verb = Verb::all_gather, .axis = -1, .uneven = true, .sizes = {1, 0, 5}},
      {.verb = Verb::gather, .root = 1, .stack = true},
      {.verb = Verb::all_to_all, .axis = 1, .concat_axis = 1, .sizes = {1, 2}, .recv_sizes = {3, 4}},
      {.verb = Verb::permute, .pairs = {{0, 1}, {1, 0}}},
      {.verb = Verb::scan, .reverse = true, .structure = 0xffffffffffffffff},
      {.verb = Verb::permute, .is_sendrecv = true, .destination = 1, .source = 0, .tag = 7},
  };
  for (const Call& call : calls) EXPECT_EQ(decode_call(encode(call)), call) << encode(call);
}

TEST(Call, TextThatNoCallWritesIsRefused) {
  for (const char* text : {"", "all_reduces", "all_reduce root", "all_reduce root=x", "all_reduce  root=1",
                           "all_reduce colour=1", "permute pairs=1", "all_gather sizes=1,,2", "send"}) {
    EXPECT_THROW((void)decode_call(text), InvalidArgument) << text;
  }
}

TEST(Call, KnowsTheShapeOfItsResultOnEveryRank) {
  const Shape shape{6, 4};
  EXPECT_EQ(output_shape({.verb = Verb::all_reduce}, shape, 0, 3), shape);
  EXPECT_EQ(output_shape({.verb = Verb::all_gather, .axis = -1}, shape, 1, 3), (Shape{6, 12}));
  EXPECT_EQ(output_shape({.verb = Verb::all_gather, .stack = true}, shape, 1, 3), (Shape{3, 6, 4}));
  EXPECT_EQ(output_shape({.verb = Verb::gather, .root = 1}, shape, 1, 3), (Shape{18, 4}));
  EXPECT_EQ(output_shape({.verb = Verb::gather, .root = 1}, shape, 0, 3), shape);
  EXPECT_EQ(output_shape({.verb = Verb::reduce_scatter, .sizes = {1, 2, 3}}, shape, 2, 3), (Shape{3, 4}));
  EXPECT_EQ(output_shape({.verb = Verb::scatter, .root = 1}, shape, 2, 3), (Shape{2, 4}));
  EXPECT_EQ(output_shape({.verb = Verb::scatter, .stack = true}, Shape{3, 5}, 2, 3), (Shape{5}));
  EXPECT_EQ(output_shape({.verb = Verb::all_to_all, .axis = 0, .concat_axis = 1}, shape, 2, 3), (Shape{2, 12}));
  EXPECT_EQ(output_shape({.verb = Verb::all_reduce, .op = Op::bor}, shape, 0, 3), shape);
}

TEST(Call, ShapesThatCannotBeKnownOrDoNotFitAreRefused) {
  const Shape shape{5, 4};
  EXPECT_THROW((void)output_shape({.verb = Verb::all_gather, .uneven = true}, shape, 0, 2), InvalidArgument);
  EXPECT_THROW((void)output_shape({.verb = Verb::reduce_scatter}, shape, 0, 2), InvalidArgument);
  EXPECT_THROW((void)output_shape({.verb = Verb::all_gather, .axis = 2}, shape, 0, 2), InvalidArgument);
  EXPECT_THROW((void)output_shape({.verb = Verb::broadcast, .root = 2}, shape, 0, 2), InvalidArgument);
}

}  // namespace
}  // namespace tutti::parallel
