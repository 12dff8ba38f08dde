// asked_backend.hpp: the backend that the program or its launcher asks for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tutti/connector.hpp>

#include "base/environment.hpp"

namespace tutti {

/// Throws Unsupported for a name that is not known.
std::string backend_from(const InitOptions& options, const Environment& environment);
/// Of all ranks. Throws Mismatch where they differ.
void check_backends(const std::vector<std::string>& backends);

}  // namespace tutti
