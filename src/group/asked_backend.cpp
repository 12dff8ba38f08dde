// asked_backend.cpp: the backend that the program or its launcher asks for.
// SPDX-License-Identifier: Apache-2.0
#include "group/asked_backend.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tutti/error.hpp>

#include "base/backend_names.hpp"

namespace tutti {

std::string backend_from(const InitOptions& options, const Environment& environment) {
  const bool open = options.backend.empty() || options.backend == "auto";
  std::string backend = open ? environment.get("TUTTI_BACKEND").value_or("auto") : options.backend;
  if (is_backend_name(backend)) return backend;
  throw Unsupported(
      fmt::format("backend '{}' is not known; the known ones are {}", backend, fmt::join(backend_names, ", ")));
}

void check_backends(const std::vector<std::string>& backends) {
  for (std::size_t rank = 1; rank < backends.size(); ++rank) {
    if (backends[rank] == backends[0]) continue;
    throw Mismatch(fmt::format("rank 0 asks for the backend {}, rank {} for {}; give all ranks the same one",
                               backends[0], rank, backends[rank]));
  }
}

}  // namespace tutti
