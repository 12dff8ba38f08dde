// shapes.hpp: what a call's result looks like, where that needs no computing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "parallel/call.hpp"

namespace tutti::python {

/// The result has the shape of the input.
inline bool keeps_shape(const parallel::Call& call, int rank) {
  if (call.is_sendrecv) return true;
  switch (call.verb) {
    case Verb::all_reduce:
    case Verb::reduce:
    case Verb::scan:
    case Verb::exscan:
    case Verb::permute: return true;
    case Verb::gather: return rank != call.root;
    default: return false;
  }
}

}  // namespace tutti::python
