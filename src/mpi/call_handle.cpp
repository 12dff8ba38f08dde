// call_handle.cpp: making calls of the plug-in, and what MPI says of an error.
// SPDX-License-Identifier: Apache-2.0
#include "mpi/call_handle.hpp"

#include <fmt/format.h>

#include <new>
#include <vector>

#include <tutti/error.hpp>

namespace tutti::mpi {

void check(const Library& library, int code, std::string_view what) {
  if (code == 0) return;
  std::vector<char> text(TUTTI_MPI_TEXT_MAX);
  library.plugin->error_text(code, text.data());
  throw Error(fmt::format("MPI ({}) failed in {}: {}", library.name, what, text.data()));
}

CallHandle make_call(const Library& library) {
  CallHandle call(library.plugin->make_call(), FreeCall{library.plugin});
  if (!call) throw std::bad_alloc();
  return call;
}

}  // namespace tutti::mpi
