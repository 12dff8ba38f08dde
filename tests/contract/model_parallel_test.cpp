// model_parallel_test.cpp: a layer over several ranks is the layer, forward and backward, however the sizes divide.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include <tutti/error.hpp>
#include <tutti/model_parallel.hpp>
#include <tutti/shard.hpp>

#include "world_param.hpp"

namespace tutti::contract {
namespace {

namespace mp = model_parallel;
using testing::DoubleNear;
using testing::HasSubstr;
using testing::Pointwise;
using Shape = std::vector<std::int64_t>;

/// Row-major, of any number of axes.
struct Array {
  Shape shape;
  std::vector<double> values;

  explicit Array(Shape s) : shape(std::move(s)), values(count_of(shape)) {}
  Array(Shape s, double seed) : Array(std::move(s)) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(seed + 1.7 * static_cast<double>(i));
  }
  static std::size_t count_of(const Shape& shape) {
    return static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
  }
  operator View() { return {values.data(), DType::float64, shape}; }  // NOLINT: as a range would be
  double& at(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * shape[1] + j)]; }
  [[nodiscard]] double at(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i * shape[1] + j)];
  }
};

/// The product of two matrices, either of them transposed if asked to.
Array product(const Array& a, bool a_turned, const Array& b, bool b_turned) {
  const std::int64_t rows = a.shape[a_turned ? 1 : 0], inner = a.shape[a_turned ? 0 : 1];
  const std::int64_t columns = b.shape[b_turned ? 0 : 1];
  Array result(Shape{rows, columns});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t k = 0; k < inner; ++k) {
        result.at(i, j) += (a_turned ? a.at(k, i) : a.at(i, k)) * (b_turned ? b.at(j, k) : b.at(k, j));
      }
    }
  }
  return result;
}

/// This rank's part, found element by element: nothing of what is tested is used.
Array expected_part(const Group& group, const Array& whole, std::size_t axis) {
  std::int64_t begin = 0, length = whole.shape[axis] / group.size();
  const std::int64_t longer = whole.shape[axis] % group.size();
  begin = group.rank() * length + std::min<std::int64_t>(group.rank(), longer);
  if (group.rank() < longer) ++length;
  Shape shape = whole.shape;
  shape[axis] = length;
  Array part(shape);
  std::size_t next = 0;
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= whole.shape[i];
  for (std::size_t i = 0; i < whole.values.size(); ++i) {
    const std::int64_t place = static_cast<std::int64_t>(i) / inner % whole.shape[axis];
    if (place >= begin && place < begin + length) part.values[next++] = whole.values[i];
  }
  return part;
}

class ModelParallel : public InWorld {};
INSTANTIATE_TEST_SUITE_P(Worlds, ModelParallel, testing::ValuesIn(worlds({1, 2, 3, 4})), world_name);

TEST_P(ModelParallel, scatter_and_gather_are_each_others_way_back_along_every_axis) {
  on_every_rank([&](Group& group) {
    for (const int dim : {0, 1, 2, -1, -3}) {
      const std::size_t axis = static_cast<std::size_t>(dim < 0 ? dim + 3 : dim);
      Array whole({7, 5, 2}, 1.0);
      const Array expected = expected_part(group, whole, axis);
      ASSERT_EQ(mp::part_shape(group, whole.shape, dim), expected.shape);

      Array part(expected.shape), taken(expected.shape), joined(whole.shape), gradient(whole.shape);
      mp::scatter(group, whole, part, {.dim = dim});
      ASSERT_EQ(part.values, expected.values);
      mp::gather_backward(group, whole, taken, {.dim = dim});
      ASSERT_EQ(taken.values, expected.values);
      mp::gather(group, part, joined, {.dim = dim});
      ASSERT_EQ(joined.values, whole.values);
      mp::scatter_backward(group, part, gradient, {.dim = dim});
      ASSERT_EQ(gradient.values, whole.values);
    }
  });
}

TEST_P(ModelParallel, without_a_dim_arrays_stay_whole) {
  on_every_rank([&](Group& group) {
    Array x({3, 2}, 1.0 + group.rank());
    Array a(x.shape), b(x.shape), c(x.shape), d(x.shape);
    mp::scatter(group, x, a, {.dim = std::nullopt});
    mp::gather(group, x, b, {.dim = std::nullopt});
    mp::scatter_backward(group, x, c, {.dim = std::nullopt});
    mp::gather_backward(group, x, d, {.dim = std::nullopt});
    for (const Array* result : {&a, &b, &c, &d}) ASSERT_EQ(result->values, x.values);
  });
}

TEST_P(ModelParallel, copy_and_reduce_are_each_others_way_back) {
  on_every_rank([&](Group& group) {
    const double sum = group.size() * (group.size() + 1) / 2.0;
    std::vector<double> x(5, group.rank() + 1.0), out(5);
    mp::copy(group, x, out);
    ASSERT_EQ(out, x);
    mp::reduce(group, x, out);
    ASSERT_EQ(out, std::vector<double>(5, sum));
    mp::copy_backward(group, x, out);
    ASSERT_EQ(out, std::vector<double>(5, sum));
    mp::reduce_backward(group, x, out);
    ASSERT_EQ(out, x);
    mp::reduce_backward(group, x, x);  // in place: nothing to do
    ASSERT_EQ(out, x);
    mp::reduce(group, x);
    mp::copy_backward(group, out);
    ASSERT_EQ(x, std::vector<double>(5, sum));
    ASSERT_EQ(out, x);
  });
}

TEST_P(ModelParallel, parts_may_have_strides_and_be_empty) {
  on_every_rank([&](Group& group) {
    Array rows({3, 8}, 2.0), back({3, 8});
    const View every_second(rows.values.data(), DType::float64, Shape{3, 4}, Shape{8, 2});
    const View to(back.values.data(), DType::float64, Shape{3, 4}, Shape{8, 2});
    mp::gather(group, mp::part_of(group, every_second), to);  // the part lies in the memory of the whole
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = 0; j < 8; ++j) ASSERT_EQ(back.at(i, j), j % 2 == 0 ? rows.at(i, j) : 0.0);
    }
    Array single({1, 2}, 3.0), joined({1, 2});
    Array own(mp::part_shape(group, single.shape, 0));
    ASSERT_EQ(own.shape[0], group.rank() == 0 ? 1 : 0);
    mp::scatter(group, single, own, {.dim = 0});
    mp::scatter_backward(group, own, joined, {.dim = 0});
    ASSERT_EQ(joined.values, single.values);
  });
}

TEST_P(ModelParallel, columns_then_rows_equal_the_dense_network_forward_and_backward) {
  on_every_rank([&](Group& group) {
    Array x({4, 3}, 1.0), up({3, 7}, 2.0), down({7, 2}, 3.0), slope({4, 2}, 4.0);
    // Whole: y = x · up · down, and the gradients for dy = slope.
    const Array hidden = product(x, false, up, false);
    const Array y = product(hidden, false, down, false), d_hidden = product(slope, false, down, true);
    const Array d_down = product(hidden, true, slope, false);
    const Array d_up = product(x, true, d_hidden, false), dx = product(d_hidden, false, up, true);

    Array own_up(mp::part_shape(group, up.shape, 1)), own_down(mp::part_shape(group, down.shape, 0));
    mp::scatter(group, up, own_up, {.dim = 1});
    mp::scatter(group, down, own_down, {.dim = 0});
    Array copied(x.shape);
    mp::copy(group, x, copied);
    const Array own_hidden = product(copied, false, own_up, false);
    Array own_y = product(own_hidden, false, own_down, false);
    mp::reduce(group, own_y);
    ASSERT_THAT(own_y.values, Pointwise(DoubleNear(1e-12), y.values));

    Array dy(slope.shape);
    mp::reduce_backward(group, slope, dy);
    const Array own_d_hidden = product(dy, false, own_down, true);
    Array own_dx = product(own_d_hidden, false, own_up, true);
    mp::copy_backward(group, own_dx);
    ASSERT_THAT(own_dx.values, Pointwise(DoubleNear(1e-12), dx.values));
    ASSERT_THAT(product(own_hidden, true, dy, false).values,
                Pointwise(DoubleNear(1e-12), expected_part(group, d_down, 0).values));
    ASSERT_THAT(product(copied, true, own_d_hidden, false).values,
                Pointwise(DoubleNear(1e-12), expected_part(group, d_up, 1).values));
  });
}

template <class F>
std::string refusal_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "not refused";
}

TEST_P(ModelParallel, what_does_not_fit_is_refused_and_the_group_goes_on) {
  on_every_rank([&](Group& group) {
    Array whole({5, 2}, 1.0), wrong({9, 2}), part(mp::part_shape(group, whole.shape, 0));
    ASSERT_THAT(refusal_of([&] { mp::scatter(group, whole, wrong, {.dim = 0}); }), HasSubstr("[9, 2]"));
    ASSERT_THAT(refusal_of([&] { mp::scatter(group, whole, part, {.dim = 2}); }), HasSubstr("dim 2"));
    ASSERT_THAT(refusal_of([&] { mp::gather(group, part, whole, {.dim = 2}); }), HasSubstr("axis 2"));
    ASSERT_THAT(refusal_of([&] { mp::gather(group, wrong, whole, {.dim = 0}); }), HasSubstr("length 9"));
    ASSERT_THAT(refusal_of([&] { mp::copy(group, whole, View()); }), HasSubstr("no array"));
    const std::span<const double> fixed(whole.values);
    ASSERT_THAT(refusal_of([&] { mp::copy(group, part.values, fixed); }), HasSubstr("read-only"));
    std::vector<float> other(10);
    ASSERT_THAT(refusal_of([&] { mp::copy(group, whole.values, other); }), HasSubstr("float64"));
    const std::span<double> values(whole.values);
    ASSERT_THAT(refusal_of([&] { mp::copy(group, values.first(4), values.subspan(1, 4)); }), HasSubstr("overlap"));
    mp::scatter(group, whole, part, {.dim = 0});
    Array joined(whole.shape);
    mp::gather(group, part, joined, {.dim = 0});
    ASSERT_EQ(joined.values, whole.values);
  });
}

}  // namespace
}  // namespace tutti::contract
