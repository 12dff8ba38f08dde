// quantise_test.cpp: blocks of bytes say what the numbers were, to half a step, and nothing is lost over time.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/quantise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <tutti/error.hpp>

#include "base/random.hpp"
#include "tests/support/kernel_reference.hpp"

namespace tutti::kernel {
namespace {

std::vector<float> some_values(std::size_t count, float width, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>((random.unit() * 2 - 1) * double(width));
  return values;
}

std::vector<std::byte> records_of(const std::vector<float>& values, float* residual = nullptr) {
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> records(static_cast<std::size_t>(quantised_bytes(count)));
  quantise(values.data(), residual, records.data(), count);
  return records;
}

std::vector<float> values_of(const std::vector<std::byte>& records, std::size_t count) {
  std::vector<float> values(count, -1);
  dequantise(records.data(), values.data(), static_cast<std::int64_t>(count));
  return values;
}

float largest_in_block(const std::vector<float>& values, std::size_t index) {
  const auto block = static_cast<std::size_t>(quantised_block);
  float largest = 0;
  for (std::size_t i = index / block * block; i < std::min(values.size(), (index / block + 1) * block); ++i) {
    largest = std::max(largest, std::abs(values[i]));
  }
  return largest;
}

TEST(Quantise, comes_back_to_half_a_step_of_its_block) {
  on_every_target([] {
    for (const std::size_t count : {0, 1, 17, 255, 256, 257, 512, 1000}) {
      std::vector<float> values = some_values(count, 3, count);
      if (count > 300) values[300] = 1000;  // one block with a large number, which is no burden to the others
      const std::vector<float> back = values_of(records_of(values), count);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_LE(std::abs(back[i] - values[i]), largest_in_block(values, i) / 127 * 0.5001f) << i << " of " << count;
      }
    }
  });
}

TEST(Quantise, gives_the_same_bytes_on_every_instruction_set) {
  const std::vector<float> values = some_values(1000, 1e-3f, 5);
  std::vector<float> residual = some_values(1000, 1e-5f, 6);
  const std::vector<float> residual_before = residual;
  const std::vector<std::byte> expected = records_of(values, residual.data());
  on_every_target([&] {
    std::vector<float> again = residual_before;
    ASSERT_EQ(records_of(values, again.data()), expected);
    ASSERT_EQ(again, residual);
  });
}

TEST(Quantise, makes_good_in_later_rounds_what_it_left_out) {
  const std::vector<float> values = some_values(700, 1, 3);
  std::vector<float> residual(700), total(700);
  constexpr int rounds = 200;
  for (int round = 0; round < rounds; ++round) {
    dequantise_add(records_of(values, residual.data()).data(), total.data(), 700);
  }
  // All that can be missing after any number of rounds is the last residual.
  for (std::size_t i = 0; i < 700; ++i) {
    ASSERT_NEAR(total[i] + residual[i], rounds * values[i], 1e-3);
    ASSERT_LE(std::abs(residual[i]), 1.1f / 127);
  }
}

TEST(Quantise, keeps_zeros_and_the_smallest_numbers_finite) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  for (const float value : {0.0f, smallest, std::numeric_limits<float>::min()}) {
    const std::vector<float> back = values_of(records_of(std::vector<float>(10, value)), 10);
    for (const float number : back) ASSERT_LE(std::abs(number - value), std::numeric_limits<float>::min());
  }
}

TEST(Quantise, shows_what_is_not_finite_in_its_block_only) {
  on_every_target([] {
    for (const float broken : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      std::vector<float> values = some_values(600, 1, 8), residual(600);
      values[100] = broken;
      const std::vector<float> back = values_of(records_of(values, residual.data()), 600);
      ASSERT_TRUE(std::isnan(back[0]) && std::isnan(back[100]) && std::isnan(back[255]));
      ASSERT_TRUE(std::isfinite(back[256]) && std::isfinite(back[599]));
      for (const float left : residual) ASSERT_TRUE(std::isfinite(left));
    }
  });
}

TEST(Quantise, refuses_a_negative_count) {
  EXPECT_THROW(quantise(nullptr, nullptr, nullptr, -1), InvalidArgument);
  EXPECT_THROW(dequantise(nullptr, nullptr, -1), InvalidArgument);
}

}  // namespace
}  // namespace tutti::kernel
