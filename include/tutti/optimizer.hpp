// optimizer.hpp: optimiser steps in one pass over memory, with their state sharded over the ranks (ZeRO).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include <tutti/group.hpp>

namespace tutti {

/// Adam with decoupled weight decay (AdamW), bias-corrected.
struct AdamW {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
};

/// Stochastic gradient descent; the weight decay is part of the gradient.
struct Sgd {
  double learning_rate = 1e-2;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

using OptimizerRule = std::variant<AdamW, Sgd>;

struct StepOptions {
  std::optional<double> weight{};     // this rank's samples: the mean is over all ranks' samples, not over ranks
  std::optional<double> clip_norm{};  // upper limit on the norm of all gradients together
  Duration timeout{};
};

/// Updates parameters that every rank of a group holds. Each rank keeps the optimiser state of its shard only and,
/// during a step, the averaged gradients of its shard only: stages 1 and 2 of ZeRO.
///
///     tutti::ShardedOptimizer optimizer(world, parameters, tutti::AdamW{.learning_rate = 1e-3});
///     optimizer.step(gradients, {.weight = double(samples)});      // collective; afterwards all ranks have the same
///     parameters
///
/// `parameters` is one contiguous array of float or double and must not move. Calls come from one thread at a time.
class ShardedOptimizer {
 public:
  /// Collective: every rank takes rank 0's parameters.
  ShardedOptimizer(Group group, View parameters, OptimizerRule rule, const CallOptions& options = {});

  /// `gradients`: those of this rank's samples, as many as there are parameters. They are overwritten.
  void step(View gradients, const StepOptions& options = {});

  /// The hyperparameters, which may be changed between steps. The kind of rule cannot be changed.
  [[nodiscard]] OptimizerRule& rule() { return rule_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// This rank's shard: its begin among the parameters, and its length.
  [[nodiscard]] std::int64_t begin() const { return begin_; }
  [[nodiscard]] std::int64_t length() const { return length_; }
  /// How many numbers of state each parameter has: 2 with AdamW (means of gradients and of their squares), 1 or 0 with
  /// Sgd.
  [[nodiscard]] int state_arrays() const;
  /// The whole state, as one process would have it, on every rank: `whole` has shape [state_arrays(), parameters] and
  /// the parameters' dtype. Collective. Together with steps() it lets training continue on any number of ranks.
  void collect_state(View whole, const CallOptions& options = {});
  /// Takes this rank's shard of such a state. Every rank calls it with the same state.
  void load_state(View whole, std::int64_t steps);
  /// Bytes of state on this rank.
  [[nodiscard]] std::size_t state_bytes() const { return state_.size(); }

 private:
  void update(void* parameters, const void* gradients, double scale);
  [[nodiscard]] void* state(int index);
  void check_state(const View& whole) const;

  Group group_;
  View parameters_;
  OptimizerRule rule_;
  Sizes sizes_;
  std::int64_t begin_ = 0, length_ = 0, steps_ = 0;
  std::vector<std::byte> state_;        // one or two arrays of this rank's length
  Buffer<std::uint8_t> own_gradients_;  // averaged, of this rank's part
};

}  // namespace tutti
