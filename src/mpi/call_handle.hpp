// call_handle.hpp: a call of the plug-in, owned; and MPI's error codes as exceptions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "mpi/library.hpp"

namespace tutti::mpi {

/// Error with MPI's words for the code, unless it is 0.
void check(const Library& library, int code, std::string_view what);

/// Frees a call of the plug-in.
struct FreeCall {
  const TuttiMpiPlugin* plugin = nullptr;
  void operator()(TuttiMpiCall* call) const { plugin->free_call(call); }
};
using CallHandle = std::unique_ptr<TuttiMpiCall, FreeCall>;
CallHandle make_call(const Library& library);

}  // namespace tutti::mpi
