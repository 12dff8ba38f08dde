// open_recorder.hpp: where a rank writes down its calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include <tutti/connector.hpp>

#include "base/environment.hpp"
#include "record/recorder.hpp"

namespace tutti {

/// In what tuttirun handed down, in a file of the folder that TUTTI_TRACE names, or in memory of its own. `world` names the job where
/// no launcher does.
std::shared_ptr<record::Recorder> open_recorder(const Environment& environment, const Place& place,
                                                std::uint64_t world);

}  // namespace tutti
