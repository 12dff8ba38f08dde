// optimise_test.cpp: AdamW and SGD against their formulas in float64, on every instruction set with the same bits.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/optimise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <tutti/error.hpp>

#include "base/random.hpp"
#include "tests/support/kernel_reference.hpp"

namespace tutti::kernel {
namespace {

template <class T>
std::vector<T> some_values(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(random.unit() * 2 - 1);
  return values;
}

template <class T>
struct State {
  std::vector<T> parameter, mean, square;
  explicit State(std::size_t count) : parameter(some_values<T>(count, 1)), mean(count), square(count) {}
};

constexpr AdamW rule_at(std::int64_t step) {
  return {.learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.99, .weight_decay = 0.1, .gradient_scale = 0.5, .step = step};
}

// The formula as the paper has it, one element at a time.
void reference_step(State<double>& s, const std::vector<double>& gradient, const AdamW& rule) {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double g = gradient[i] * rule.gradient_scale;
    s.mean[i] = rule.beta1 * s.mean[i] + (1 - rule.beta1) * g;
    s.square[i] = rule.beta2 * s.square[i] + (1 - rule.beta2) * g * g;
    const double mean = s.mean[i] / (1 - std::pow(rule.beta1, rule.step));
    const double square = s.square[i] / (1 - std::pow(rule.beta2, rule.step));
    s.parameter[i] -= rule.learning_rate * rule.weight_decay * s.parameter[i];
    s.parameter[i] -= rule.learning_rate * mean / (std::sqrt(square) + rule.epsilon);
  }
}

template <class T>
State<T> after_steps(std::size_t count, int steps) {
  State<T> state(count);
  for (int step = 1; step <= steps; ++step) {
    const std::vector<T> gradient = some_values<T>(count, 100 + static_cast<std::uint64_t>(step));
    adamw_step(dtype_of<T>, {state.parameter.data(), gradient.data(), state.mean.data(), state.square.data()},
               rule_at(step), static_cast<std::int64_t>(count));
  }
  return state;
}

constexpr std::size_t counts[] = {0, 1, 3, 4, 7, 16, 33, 1000};

TEST(AdamW, follows_the_formula) {
  for (const std::size_t count : counts) {
    State<double> expected(count);
    for (int step = 1; step <= 5; ++step) {
      reference_step(expected, some_values<double>(count, 100 + static_cast<std::uint64_t>(step)), rule_at(step));
    }
    const State<double> doubles = after_steps<double>(count, 5);
    const State<float> floats = after_steps<float>(count, 5);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_NEAR(doubles.parameter[i], expected.parameter[i], 1e-14);
      ASSERT_NEAR(doubles.mean[i], expected.mean[i], 1e-14);
      ASSERT_NEAR(doubles.square[i], expected.square[i], 1e-14);
      ASSERT_NEAR(static_cast<double>(floats.parameter[i]), expected.parameter[i], 1e-5);
    }
  }
}

TEST(AdamW, gives_the_same_bits_on_every_instruction_set) {
  const State<float> expected = after_steps<float>(1000, 3);
  on_every_target([&] {
    const State<float> state = after_steps<float>(1000, 3);
    ASSERT_EQ(state.parameter, expected.parameter);
    ASSERT_EQ(state.mean, expected.mean);
    ASSERT_EQ(state.square, expected.square);
  });
}

TEST(AdamW, refuses_small_floats_negative_counts_and_a_step_before_the_first) {
  float one = 1;
  const AdamWArrays arrays{&one, &one, &one, &one};
  EXPECT_THROW(adamw_step(DType::bfloat16, arrays, {}, 1), InvalidArgument);
  EXPECT_THROW(adamw_step(DType::float32, arrays, {}, -1), InvalidArgument);
  EXPECT_THROW(adamw_step(DType::float32, arrays, {.step = 0}, 1), InvalidArgument);
  adamw_step(DType::float32, {}, {}, 0);
  EXPECT_EQ(one, 1);
}

struct SgdState {
  std::vector<double> parameter, velocity;
};

SgdState sgd_steps(std::size_t count, Sgd rule, int steps) {
  SgdState s{some_values<double>(count, 1),
             std::vector<double>(count, 7)};  // the first step must not read the velocity
  for (int step = 0; step < steps; ++step) {
    const auto gradient = some_values<double>(count, 100 + static_cast<std::uint64_t>(step));
    rule.is_first = step == 0;
    sgd_step(DType::float64, {s.parameter.data(), gradient.data(), s.velocity.data()}, rule,
             static_cast<std::int64_t>(count));
  }
  return s;
}

std::vector<double> reference_sgd(std::size_t count, const Sgd& rule, int steps) {
  std::vector<double> parameter = some_values<double>(count, 1), velocity(count);
  for (int step = 0; step < steps; ++step) {
    const auto gradient = some_values<double>(count, 100 + static_cast<std::uint64_t>(step));
    for (std::size_t i = 0; i < count; ++i) {
      const double g = rule.gradient_scale * gradient[i] + rule.weight_decay * parameter[i];
      velocity[i] = step == 0 ? g : rule.momentum * velocity[i] + (1 - rule.dampening) * g;
      const double direction = rule.momentum == 0 ? g : rule.nesterov ? g + rule.momentum * velocity[i] : velocity[i];
      parameter[i] -= rule.learning_rate * direction;
    }
  }
  return parameter;
}

TEST(Sgd, follows_the_formula_plain_with_momentum_and_nesterov) {
  const Sgd rules[] = {{.learning_rate = 0.1},
                       {.learning_rate = 0.1, .weight_decay = 0.3, .gradient_scale = 0.5},
                       {.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.2},
                       {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true}};
  on_every_target([&] {
    for (const Sgd& rule : rules) {
      for (const std::size_t count : counts) {
        const auto expected = reference_sgd(count, rule, 4);
        const auto state = sgd_steps(count, rule, 4);
        for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(state.parameter[i], expected[i], 1e-14);
      }
    }
  });
}

TEST(Sgd, refuses_momentum_without_memory_and_nesterov_without_momentum) {
  double one = 1;
  EXPECT_THROW(sgd_step(DType::float64, {&one, &one, nullptr}, {.momentum = 0.9}, 1), InvalidArgument);
  EXPECT_THROW(sgd_step(DType::float64, {&one, &one, &one}, {.nesterov = true}, 1), InvalidArgument);
  sgd_step(DType::float64, {&one, &one, nullptr}, {.learning_rate = 0.25}, 1);
  EXPECT_EQ(one, 0.75);
}

TEST(SumOfSquares, adds_in_float64_with_the_same_bits_everywhere) {
  const auto values = some_values<float>(1003, 9);
  double expected = 0;
  for (const float value : values) expected += double(value) * double(value);
  const double result = sum_of_squares(DType::float32, values.data(), 1003);
  EXPECT_NEAR(result, expected, 1e-10);
  on_every_target([&] { ASSERT_EQ(sum_of_squares(DType::float32, values.data(), 1003), result); });
  EXPECT_EQ(sum_of_squares(DType::float64, nullptr, 0), 0);
}

}  // namespace
}  // namespace tutti::kernel
