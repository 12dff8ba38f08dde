// shapes.hpp: what a call's result looks like, where that needs no computing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "parallel/call.hpp"

namespace tutti::python {

/// The result has the shape of the input.
inline bool keeps_shape(const parallel::Call& call, int rank) {
  return (tutti::keeps_shape(call.verb) && !root_gives(call.verb)) || gives_input_back(call, rank);
}

}  // namespace tutti::python
