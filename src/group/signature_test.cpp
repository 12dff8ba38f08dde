// signature_test.cpp: which differences between ranks a signature shows, and which it must not.
// SPDX-License-Identifier: Apache-2.0
#include "group/signature.hpp"

#include <gtest/gtest.h>

#include <vector>

#include <tutti/error.hpp>

#include "group/check.hpp"

namespace tutti {
namespace {

Signature signature_at(Request request, int rank, int size) {
  BlockLayout layout;
  check_collective(request, rank, size, layout);
  return request.signature;
}

TEST(Signature, IsTheSameAtTheRootOfAScatterAndElsewhere) {
  std::vector<float> whole(12), part(4);
  EXPECT_EQ(signature_at({.verb = Verb::scatter, .input = whole, .output = part}, 0, 3),
            signature_at({.verb = Verb::scatter, .output = part}, 1, 3));
}

TEST(Signature, IsTheSameInAnUnevenScatter) {
  std::vector<float> whole(12), two(2), seven(7);
  const std::vector<std::int64_t> sizes{2, 7, 3};
  EXPECT_EQ(signature_at({.verb = Verb::scatter, .input = whole, .output = two, .sizes = sizes}, 0, 3),
            signature_at({.verb = Verb::scatter, .output = seven, .sizes = sizes}, 1, 3));
}

TEST(Signature, LeavesTheLengthOutWhereItMayDiffer) {
  std::vector<float> two(2), seven(7), all(9);
  EXPECT_EQ(signature_at({.verb = Verb::all_gather, .input = two, .output = all, .uneven = true}, 0, 2),
            signature_at({.verb = Verb::all_gather, .input = seven, .output = all, .uneven = true}, 1, 2));
  std::vector<float> even(14);
  EXPECT_NE(signature_at({.verb = Verb::all_gather, .input = seven, .output = even}, 0, 2),
            signature_at({.verb = Verb::all_gather, .input = seven, .output = even, .uneven = true}, 1, 2));
}

TEST(Signature, IsTheSameInPlaceAndNot) {
  std::vector<float> x(5), y(5);
  EXPECT_EQ(signature_at({.verb = Verb::all_reduce, .input = x, .output = x}, 0, 2),
            signature_at({.verb = Verb::all_reduce, .input = x, .output = y}, 1, 2));
}

TEST(Signature, OfABroadcastWhoseShapeComesWithTheData) {
  std::vector<float> x(5);
  Request root{.verb = Verb::broadcast, .input = x, .output = x, .sizes_follow = true};
  Request other{.verb = Verb::broadcast, .sizes_follow = true};
  EXPECT_EQ(signature_at(root, 0, 2), signature_at(other, 1, 2));
}

TEST(Signature, ShowsEveryDifferenceThatMatters) {
  std::vector<float> x(6), y(6);
  const Request base{.verb = Verb::all_reduce, .input = x, .output = y};
  Request other = base;
  other.op = Op::max;
  EXPECT_NE(signature_at(base, 0, 2), signature_at(other, 1, 2));
  other = base;
  other.differentiated = true;
  EXPECT_NE(signature_at(base, 0, 2), signature_at(other, 1, 2));
  const std::int64_t shape[] = {2, 3};
  other = base;
  other.input = View(x.data(), DType::float32, shape);
  other.output = View(y.data(), DType::float32, shape);
  EXPECT_NE(signature_at(base, 0, 2), signature_at(other, 1, 2));
}

TEST(Check, NegativeAxesCountFromTheEnd) {
  std::vector<float> x(6), y(12);
  const std::int64_t in[] = {2, 3}, out[] = {2, 6};
  Request request{.verb = Verb::all_gather,
                  .input = View(x.data(), DType::float32, in),
                  .output = View(y.data(), DType::float32, out),
                  .axis = -1};
  BlockLayout layout;
  check_collective(request, 0, 2, layout);
  EXPECT_EQ(request.axis, 1);
  EXPECT_EQ(layout.output_sizes, (std::vector<std::int64_t>{3, 3}));
  request.axis = -3;
  EXPECT_THROW(check_collective(request, 0, 2, layout), InvalidArgument);
}

}  // namespace
}  // namespace tutti
