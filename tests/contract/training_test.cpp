// training_test.cpp: meshes, buckets and sharded optimisers among ranks: what one process would have got.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include <tutti/buckets.hpp>
#include <tutti/error.hpp>
#include <tutti/mesh.hpp>
#include <tutti/optimizer.hpp>
#include <tutti/shard.hpp>

#include "world_param.hpp"

namespace tutti::contract {
namespace {

using testing::ElementsAre;
using Doubles = std::vector<double>;

class Training : public InWorld {};
INSTANTIATE_TEST_SUITE_P(Worlds, Training, testing::ValuesIn(worlds({1, 2, 3, 4})), world_name);

TEST_P(Training, a_mesh_has_a_group_along_each_axis) {
  on_every_rank([&](Group& world) {
    const int rows = world.size() % 2 == 0 ? 2 : 1;
    Mesh mesh(world, {{"data", rows}, {.name = "tensor", .size = -1, .periodic = true}});
    ASSERT_EQ(mesh.size("tensor"), world.size() / rows);
    ASSERT_EQ(mesh["tensor"].rank(), mesh.coordinate("tensor"));
    ASSERT_EQ(mesh["data"].size(), rows);
    ASSERT_EQ(mesh.rank_at(mesh.coordinates()), world.rank());
    std::vector<float> ones = {1};
    mesh["tensor"].all_reduce(ones);
    ASSERT_EQ(ones[0], static_cast<float>(mesh.size("tensor")));
    const std::vector<std::string> both = {"tensor", "data"};
    ASSERT_EQ(mesh.group(both).size(), world.size());
    ASSERT_EQ(&mesh.group(both), &mesh.group(both));
    ASSERT_EQ(mesh.neighbour("tensor", mesh.size("tensor")), world.rank());
    ASSERT_EQ(mesh.neighbour("data", mesh.size("data")), nobody);
    ASSERT_EQ(mesh.neighbour("data", -mesh.coordinate("data") - 1), nobody);
    ASSERT_NE(mesh.describe().find("data"), std::string::npos);
    ASSERT_THROW(Mesh(world, {{"data", world.size() + 1}}), InvalidArgument);
    ASSERT_THROW(Mesh(world, {{"a", -1}, {"b", -1}}), InvalidArgument);
    ASSERT_THROW((void)mesh["pipeline"], InvalidArgument);
  });
}

// Each cell is told apart by where it lies in the whole grid; so every margin can be told right or wrong.
TEST_P(Training, a_mesh_fills_the_margins_of_an_array) {
  on_every_rank([&](Group& world) {
    const int rows = world.size() % 2 == 0 ? 2 : 1;
    constexpr std::int64_t own = 3, halo = 2;
    Mesh mesh(world, {{.name = "y", .size = rows}, {.name = "x", .size = -1, .periodic = true}});
    const std::int64_t high = own * rows, wide = own * mesh.size("x"), side = own + 2 * halo;
    const auto y_at = [&](std::int64_t i) { return mesh.coordinate("y") * own + i - halo; };
    const auto x_at = [&](std::int64_t j) { return (mesh.coordinate("x") * own + j - halo + wide) % wide; };
    std::vector<std::int64_t> u(static_cast<std::size_t>(2 * side * side), -1);
    const auto at = [&](std::int64_t layer, std::int64_t i, std::int64_t j) -> std::int64_t& {
      return u[static_cast<std::size_t>((layer * side + i) * side + j)];
    };
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      for (std::int64_t i = halo; i < halo + own; ++i) {
        for (std::int64_t j = halo; j < halo + own; ++j) at(layer, i, j) = (layer * high + y_at(i)) * wide + x_at(j);
      }
    }
    const std::vector<std::int64_t> shape{2, side, side};
    mesh.exchange(View(u.data(), DType::int64, shape), {.halo = {halo}, .axes = {-2, -1}});
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      for (std::int64_t i = 0; i < side; ++i) {
        for (std::int64_t j = 0; j < side; ++j) {
          const bool beyond = y_at(i) < 0 || y_at(i) >= high;
          if (!beyond) {
            ASSERT_EQ(at(layer, i, j), (layer * high + y_at(i)) * wide + x_at(j)) << layer << " " << i << " " << j;
          } else if (j >= halo && j < halo + own) {
            ASSERT_EQ(at(layer, i, j), -1) << "beyond an open edge";
          }
        }
      }
    }
    EXPECT_THROW(mesh.exchange(View(u.data(), DType::int64, shape), {.halo = {3}, .axes = {-2, -1}}), InvalidArgument);
  });
}

TEST_P(Training, neighbours_give_each_other_their_parts) {
  on_every_rank([&](Group& world) {
    Mesh mesh(world, {{.name = "y", .size = 1}, {.name = "x", .size = -1, .periodic = true}});
    const int left = mesh.neighbour("x", -1), right = mesh.neighbour("x", 1), self = world.rank();
    const std::vector<int> mine{self, self};
    std::vector<int> all(8, -1);
    mesh.neighbour_all_gather(mine, all);
    ASSERT_THAT(all, ElementsAre(-1, -1, -1, -1, left, left, right, right));  // nobody is above or below
    const std::vector<int> parts{0, 1, 10 * self + 2, 10 * self + 3};
    std::vector<int> came(4, -1);
    mesh.neighbour_all_to_all(parts, came);
    ASSERT_THAT(came, ElementsAre(-1, -1, 10 * left + 3, 10 * right + 2));
    EXPECT_THROW(mesh.neighbour_all_gather(mine, came), InvalidArgument);
    EXPECT_THROW(mesh.neighbour_all_to_all(mine, came), InvalidArgument);
  });
}

TEST_P(Training, buckets_give_the_mean_over_ranks_or_samples) {
  on_every_rank([&](Group& world) {
    Buckets buckets(world, {{.count = 5}, {.count = 3, .dtype = DType::float64}, {.count = 4}},
                    {.bytes = 16, .first_bytes = 1});
    const int own = world.rank() + 1;
    const double count = world.size();
    for (const bool is_weighted : {false, true, false}) {
      buckets.begin(is_weighted ? std::optional<double>(own - 1 + (world.size() == 1)) : std::nullopt);
      for (float& x : buckets.gradient<float>(2)) x = static_cast<float>(own);
      buckets.ready(2);
      for (double& x : buckets.gradient<double>(1)) x = own;
      for (float& x : buckets.gradient<float>(0)) x = static_cast<float>(own);
      if (world.rank() % 2 == 0) buckets.ready(0);  // the others leave it to finish()
      buckets.finish();
      double expected = (count + 1) / 2;
      if (is_weighted && count > 1) {  // Σ r (r + 1) ÷ Σ r, r below count
        double weighted = 0, total = 0;
        for (int r = 0; r < world.size(); ++r) weighted += r * (r + 1.0), total += r;
        expected = weighted / total;
      }
      for (const double x : buckets.gradient<double>(1)) ASSERT_NEAR(x, expected, 1e-12);
      for (const float x : buckets.gradient<float>(0)) ASSERT_NEAR(x, expected, 1e-6);
      for (const float x : buckets.gradient<float>(2)) ASSERT_NEAR(x, expected, 1e-6);
    }
    ASSERT_EQ(buckets.bucket_count(), 3);
    ASSERT_THROW(buckets.ready(0), InvalidArgument);
    ASSERT_THROW(buckets.finish(), InvalidArgument);
    ASSERT_THROW((void)buckets.gradient<double>(0), InvalidArgument);
  });
}

Doubles gradient_of(int rank, int step) {
  Doubles gradient(11);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = std::sin(double(i) + 3 * rank + 7 * step);
  return gradient;
}

/// What one process would have got from the mean of all ranks' gradients.
Doubles alone(const OptimizerRule& rule, int size, int steps) {
  Doubles parameters(11, 1.0), first(11), second(11);
  for (int step = 1; step <= steps; ++step) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      double g = 0;
      for (int rank = 0; rank < size; ++rank) g += gradient_of(rank, step)[i] / size;
      if (const auto* adamw = std::get_if<AdamW>(&rule)) {
        first[i] = adamw->beta1 * first[i] + (1 - adamw->beta1) * g;
        second[i] = adamw->beta2 * second[i] + (1 - adamw->beta2) * g * g;
        const double mean = first[i] / (1 - std::pow(adamw->beta1, step));
        const double square = second[i] / (1 - std::pow(adamw->beta2, step));
        parameters[i] *= 1 - adamw->learning_rate * adamw->weight_decay;
        parameters[i] -= adamw->learning_rate * mean / (std::sqrt(square) + adamw->epsilon);
      } else {
        const Sgd& sgd = std::get<Sgd>(rule);
        first[i] = step == 1 ? g : sgd.momentum * first[i] + g;
        parameters[i] -= sgd.learning_rate * (sgd.momentum != 0 ? first[i] : g);
      }
    }
  }
  return parameters;
}

TEST_P(Training, a_sharded_optimizer_steps_as_one_process_would) {
  const OptimizerRule rules[] = {AdamW{.learning_rate = 0.1}, Sgd{.learning_rate = 0.1, .momentum = 0.9}, Sgd{}};
  for (const OptimizerRule& rule : rules) {
    const Doubles expected = alone(rule, size(), 4);
    on_every_rank([&](Group& world) {
      Doubles parameters(11, world.rank() == 0 ? 1.0 : -5.0);  // rank 0's count
      ShardedOptimizer optimizer(world, parameters, rule);
      for (int step = 1; step <= 4; ++step) {
        Doubles gradient = gradient_of(world.rank(), step);
        optimizer.step(gradient, {.weight = step % 2 == 0 ? std::optional<double>(8) : std::nullopt, .clip_norm = 1e9});
      }
      for (std::size_t i = 0; i < parameters.size(); ++i) ASSERT_NEAR(parameters[i], expected[i], 1e-12);
      ASSERT_EQ(optimizer.length(), shard_of(11, world.size(), world.rank()).length);
      Doubles short_gradient(3);
      ASSERT_THROW(optimizer.step(short_gradient), InvalidArgument);
    });
  }
}

TEST_P(Training, a_state_goes_on_on_another_number_of_ranks) {
  const OptimizerRule rules[] = {AdamW{.learning_rate = 0.1}, Sgd{.learning_rate = 0.1, .momentum = 0.9}, Sgd{}};
  for (const OptimizerRule& rule : rules) {
    on_every_rank([&](Group& world) {
      Doubles parameters(11, 1.0);
      ShardedOptimizer optimizer(world, parameters, rule);
      const auto gradient_at = [](int step) { return gradient_of(0, step); };  // the same on every rank
      for (int step = 1; step <= 2; ++step) {
        Doubles gradient = gradient_at(step);
        optimizer.step(gradient);
      }
      const std::int64_t shape[] = {optimizer.state_arrays(), 11};
      Doubles state(static_cast<std::size_t>(shape[0] * shape[1]) + 1);  // one more: a pointer even if there is none
      const View whole(state.data(), DType::float64, shape);
      optimizer.collect_state(whole);

      Group alone = world.split(world.rank());
      Doubles continued = parameters;
      ShardedOptimizer single(alone, continued, rule);
      single.load_state(whole, optimizer.steps());
      for (int step = 3; step <= 4; ++step) {
        Doubles gradient = gradient_at(step), same = gradient;
        optimizer.step(gradient);
        single.step(same);
      }
      for (std::size_t i = 0; i < parameters.size(); ++i) ASSERT_NEAR(continued[i], parameters[i], 1e-12);
      ASSERT_EQ(single.steps(), 4);
      ASSERT_THROW(single.load_state(state, 4), InvalidArgument);
      ASSERT_THROW(single.load_state(whole, -1), InvalidArgument);
      ASSERT_THROW(optimizer.collect_state(parameters), InvalidArgument);
    });
  }
}

}  // namespace
}  // namespace tutti::contract
