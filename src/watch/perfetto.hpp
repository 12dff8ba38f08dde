// perfetto.hpp: a timeline in the trace-event format, for ui.perfetto.dev and chrome://tracing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "watch/timeline.hpp"

namespace tutti::watch {

/// Ranks are processes, groups are threads (several where calls overlap), messages are arrows.
std::string to_perfetto(const Timeline& timeline);

}  // namespace tutti::watch
