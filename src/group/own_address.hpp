// own_address.hpp: where a rank listens, so that the others reach it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tutti/connector.hpp>

#include "base/environment.hpp"
#include "wire/address.hpp"

namespace tutti {

/// An address at which every other rank reaches this one, port 0. Collective: the ranks tell each other which network they are in.
wire::Address find_own_address(Connector& connector, const Environment& environment, TimePoint deadline);

}  // namespace tutti
