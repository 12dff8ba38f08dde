// metrics.hpp: the counts of a host's ranks as Prometheus reads them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "record/snapshot.hpp"

namespace tutti::watch {

std::string to_prometheus(std::span<const record::Snapshot> ranks);

}  // namespace tutti::watch
