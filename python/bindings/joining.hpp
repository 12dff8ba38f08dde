// joining.hpp: this process becomes a rank of the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <tutti/init.hpp>

#include "bindings/registry.hpp"

namespace tutti::python {

/// What was found out on joining.
struct Facts {
  Place place{};
  std::string description;
};

struct Joined {
  Group world;
  Facts facts;
};

/// Without the GIL.
Joined join(const std::shared_ptr<Connector>& connector, const InitOptions& options);
/// From now on world() is this one.
std::shared_ptr<Member> adopt(Joined joined);

}  // namespace tutti::python
