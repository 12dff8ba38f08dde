// site.hpp: where the program made a call, for reports of what went wrong.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "bindings/running.hpp"

namespace tutti::python {

/// "train.py:41": the innermost line of Python that is not Tutti's own; empty where there is none. Costs microseconds, so it
/// is asked for only when a call takes longer than a moment or fails.
std::string call_site();

/// The same as the recorder knows it, for every call: it costs as much as looking at two frames. 0: not known.
std::uint32_t recorded_site(const Member& member);

/// Tells the others' reports where this call was made.
void note_site(const Started& started);

}  // namespace tutti::python
