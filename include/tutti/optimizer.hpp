// optimizer.hpp: optimiser steps in one pass over memory, their state shared out among ranks (ZeRO).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include <tutti/group.hpp>

namespace tutti {

/// Adam with weight decay apart from the gradient, bias-corrected.
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
  std::optional<double> clip_norm{};  // the most that the norm of all gradients together may be
  Duration timeout{};
};

/// Steps parameters that every rank of a group has, each rank keeping the optimiser's state of its part only and, while it
/// steps, the averaged gradients of its part only: stages 1 and 2 of ZeRO.
///
///     tutti::ShardedOptimizer optimizer(world, parameters, tutti::AdamW{.learning_rate = 1e-3});
///     optimizer.step(gradients, {.weight = double(samples)});      // collective; parameters are the same again afterwards
///
/// `parameters` is one contiguous array of float or double, which must stay where it is. Calls come from one thread at a time.
class ShardedOptimizer {
 public:
  /// Collective: rank 0's parameters are everybody's from then on.
  ShardedOptimizer(Group group, View parameters, OptimizerRule rule, const CallOptions& options = {});

  /// `gradients`: of this rank's samples, as many as there are parameters. They are overwritten.
  void step(View gradients, const StepOptions& options = {});

  /// The learning rate and the like, to be changed between steps. The kind of rule stays.
  [[nodiscard]] OptimizerRule& rule() { return rule_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// This rank's part: where it begins among the parameters, and its length.
  [[nodiscard]] std::int64_t begin() const { return begin_; }
  [[nodiscard]] std::int64_t length() const { return length_; }
  /// How many numbers of state each parameter has: 2 with AdamW (means of gradients and of their squares), 1 or 0 with Sgd.
  [[nodiscard]] int state_arrays() const;
  /// The whole state, as one process would have it, on every rank: `whole` has shape [state_arrays(), parameters] and the
  /// parameters' dtype. Collective. With it, and steps(), training goes on on any number of ranks.
  void collect_state(View whole, const CallOptions& options = {});
  /// Takes this rank's part of such a state. Every rank does, with the same.
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
