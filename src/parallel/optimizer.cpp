// optimizer.cpp: gradients averaged and shared out, one fused step on this rank's part, parameters put together again.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <tutti/error.hpp>
#include <tutti/optimizer.hpp>
#include <tutti/shard.hpp>

#include "kernel/kernel.hpp"
#include "kernel/optimise.hpp"

namespace tutti {
namespace {

void check_array(const View& view, std::string_view what) {
  const bool is_known = view.dtype() == DType::float32 || view.dtype() == DType::float64;
  if (view.present() && view.axes() == 1 && view.is_contiguous() && is_known && !view.is_read_only()) return;
  throw InvalidArgument(
      fmt::format("a sharded optimiser takes its {} as one contiguous array of float or double", what));
}

int arrays_of_state(const OptimizerRule& rule) {
  if (std::holds_alternative<AdamW>(rule)) return 2;
  return std::get<Sgd>(rule).momentum != 0 ? 1 : 0;
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(Group group, View parameters, OptimizerRule rule, const CallOptions& options)
    : group_(std::move(group)), parameters_(parameters), rule_(rule) {
  check_array(parameters_, "parameters");
  sizes_ = shard_sizes(parameters_.count(), group_.size());
  const Range own = shard_of(parameters_.count(), group_.size(), group_.rank());
  begin_ = own.begin;
  length_ = own.length;
  const auto bytes = static_cast<std::size_t>(length_) * size_of(parameters_.dtype());
  state_.resize(bytes * static_cast<std::size_t>(arrays_of_state(rule_)));
  own_gradients_ = group_.empty<std::uint8_t>(std::max<std::size_t>(bytes, 1));
  group_.broadcast(parameters_, {.timeout = options.timeout});
}

void* ShardedOptimizer::state(int index) {
  return state_.data() + static_cast<std::size_t>(index * length_) * size_of(parameters_.dtype());
}

int ShardedOptimizer::state_arrays() const { return arrays_of_state(rule_); }

void ShardedOptimizer::check_state(const View& whole) const {
  const std::int64_t expected[] = {state_arrays(), parameters_.count()};
  if (whole.present() && whole.dtype() == parameters_.dtype() && std::ranges::equal(whole.shape(), expected)) return;
  throw InvalidArgument(fmt::format("the state of this optimiser is {} of shape [{}, {}], not {} of shape [{}]",
                                    name_of(parameters_.dtype()), expected[0], expected[1], name_of(whole.dtype()),
                                    fmt::join(whole.shape(), ", ")));
}

void ShardedOptimizer::collect_state(View whole, const CallOptions& options) {
  // What does not fit is refused by the call, which tells the other ranks.
  if (state_arrays() == 0) return check_state(whole);
  const std::int64_t shape[] = {state_arrays(), length_};
  group_.all_gather(View(state_.data(), parameters_.dtype(), shape), whole,
                    {.axis = 1, .uneven = true, .sizes = sizes_, .timeout = options.timeout});
}

void ShardedOptimizer::load_state(View whole, std::int64_t steps) {
  check_state(whole);
  if (steps < 0) throw InvalidArgument(fmt::format("an optimiser cannot have taken {} steps", steps));
  if (!state_.empty()) kernel::pack(whole.slice(1, begin_, length_), state_.data());
  steps_ = steps;
}

void ShardedOptimizer::step(View gradients, const StepOptions& options) {
  check_array(gradients, "gradients");
  if (gradients.count() != parameters_.count() || gradients.dtype() != parameters_.dtype()) {
    throw InvalidArgument(fmt::format("there are {} × {} parameters, but {} × {} gradients",
                                      name_of(parameters_.dtype()), parameters_.count(), name_of(gradients.dtype()),
                                      gradients.count()));
  }
  const DType dtype = gradients.dtype();
  Op op = Op::mean;
  if (options.weight) {
    double total = *options.weight;
    group_.all_reduce(std::span(&total, 1), {.timeout = options.timeout});
    if (!(total > 0)) throw InvalidArgument("no rank has any samples: the weights add up to 0");
    // A rank without samples may hold anything, NaN mostly.
    if (*options.weight == 0) kernel::fill_zero(dtype, gradients.data(), gradients.count());
    else kernel::scale(dtype, gradients.data(), gradients.data(), *options.weight / total, gradients.count());
    op = Op::sum;
  }
  const View own(own_gradients_.data(), dtype, std::span(&length_, 1));
  group_.reduce_scatter(gradients, own, {.op = op, .sizes = sizes_, .timeout = options.timeout});
  double scale = 1;
  if (options.clip_norm) {
    double square = kernel::sum_of_squares(dtype, own.data(), length_);
    group_.all_reduce(std::span(&square, 1), {.timeout = options.timeout});
    scale = std::min(1.0, *options.clip_norm / (std::sqrt(square) + 1e-6));
  }
  ++steps_;
  const View part = parameters_.slice(0, begin_, length_);
  update(part.data(), own.data(), scale);
  group_.all_gather(part, parameters_, {.uneven = true, .sizes = sizes_, .timeout = options.timeout});
}

void ShardedOptimizer::update(void* parameters, const void* gradients, double scale) {
  const DType dtype = parameters_.dtype();
  if (const auto* adamw = std::get_if<AdamW>(&rule_)) {
    const kernel::AdamW rule{.learning_rate = adamw->learning_rate,
                             .beta1 = adamw->beta1,
                             .beta2 = adamw->beta2,
                             .epsilon = adamw->epsilon,
                             .weight_decay = adamw->weight_decay,
                             .gradient_scale = scale,
                             .step = steps_};
    kernel::adamw_step(dtype, {parameters, gradients, state(0), state(1)}, rule, length_);
    return;
  }
  const Sgd& sgd = std::get<Sgd>(rule_);
  const kernel::Sgd rule{.learning_rate = sgd.learning_rate,
                         .momentum = sgd.momentum,
                         .dampening = sgd.dampening,
                         .weight_decay = sgd.weight_decay,
                         .gradient_scale = scale,
                         .nesterov = sgd.nesterov,
                         .is_first = steps_ == 1};
  kernel::sgd_step(dtype, {parameters, gradients, sgd.momentum != 0 ? state(0) : nullptr}, rule, length_);
}

}  // namespace tutti
