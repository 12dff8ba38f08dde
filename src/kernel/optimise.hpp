// optimise.hpp: one step of an optimiser over flat arrays, each element read and written once.
// SPDX-License-Identifier: Apache-2.0
//
// float32 and float64 only: parameters in fewer bits are kept beside a float32 master copy. The bits do not depend on the
// vector width, so ranks with different processors agree. Cost: memory bandwidth; AdamW reads 4 and writes 3 arrays.
#pragma once

#include <cstdint>

#include <tutti/dtype.hpp>

namespace tutti::kernel {

/// Adam with weight decay apart from the gradient (Loshchilov and Hutter), bias-corrected.
struct AdamW {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
  double gradient_scale = 1;  // times the gradient before it is used: 1 ÷ sum of weights, clipping
  std::int64_t step = 1;      // counts from 1
};

struct AdamWArrays {
  void* parameter;
  const void* gradient;
  void* mean;    // of the gradient, exponentially weighted
  void* square;  // of the gradient, likewise
};

void adamw_step(DType dtype, const AdamWArrays& arrays, const AdamW& rule, std::int64_t count);

/// v = momentum × v + (1 − dampening) × g, or v = g in the first step; then p −= learning_rate × v (nesterov: g + momentum × v).
/// The weight decay is part of g.
struct Sgd {
  double learning_rate = 1e-2;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  double gradient_scale = 1;
  bool nesterov = false;
  bool is_first = false;
};

struct SgdArrays {
  void* parameter;
  const void* gradient;
  void* velocity;  // null without momentum
};

void sgd_step(DType dtype, const SgdArrays& arrays, const Sgd& rule, std::int64_t count);

/// Σ x², added in float64, block by block in a fixed order: for norms over many arrays.
double sum_of_squares(DType dtype, const void* from, std::int64_t count);

}  // namespace tutti::kernel
