// meeting.hpp: this process meets the others of its job, while Python hears Ctrl-C.
// SPDX-License-Identifier: Apache-2.0
//
// The others may have seen this rank, so it cannot take a meeting back: one that an interrupt leaves goes on, in a thread of its own and to
// its own deadline, and the next init() comes back to it.
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

/// With the GIL. Raises what a signal's handler raises meanwhile.
Joined meet(const InitOptions& options);
/// The same with what was met already. Without the GIL.
Joined join(const std::shared_ptr<Connector>& connector, const InitOptions& options);
/// From now on world() is this one. With the GIL.
std::shared_ptr<Member> adopt(Joined joined);

}  // namespace tutti::python
