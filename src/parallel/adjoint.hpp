// adjoint.hpp: how gradients flow back through a call: the one table that all frameworks read.
// SPDX-License-Identifier: Apache-2.0
//
// The convention: the gradient of the sum of all ranks' losses. docs/gradients.md explains the table.
#pragma once

#include <cstdint>
#include <span>

#include "parallel/call.hpp"

namespace tutti::parallel {

struct Adjoint {
  enum class Kind : std::uint8_t {
    linear,  // run `call` on the incoming gradient, then apply the fields below, in their order
    select,  // min and max: the summed gradient goes to the ranks that hold the value; ties share it
  };
  Kind kind = Kind::linear;
  Call call;              // its result has the shape of the forward input
  double scale = 1.0;     // multiply the result by it
  bool adds_own = false;  // add the incoming gradient itself: off the root, reduce and gather return their input
  bool is_zero = false;   // this rank's input had no part in the result: take part in `call`, then give zeros
};

/// `shape` is that of the forward input on this rank. Throws Unsupported, naming the verb and the operation, where
/// there is no gradient.
Adjoint adjoint_of(const Call& call, std::span<const std::int64_t> shape, int rank, int size);
/// The same before the shape is known: compilers look at programs without one.
Adjoint adjoint_of(const Call& call, int rank, int size);

}  // namespace tutti::parallel
