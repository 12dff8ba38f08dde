// measure.hpp: what plans really do: counted, and timed on a simple model of a machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "plan/cost.hpp"
#include "plan/plan.hpp"

namespace tutti {

/// Counts rounds, messages and bytes of the plans of all ranks, and runs them in virtual time: every rank sends one message
/// at a time and receives one at a time, at the speed of the link inside a node, and reduces one piece at a time.
/// Plans with calls on subgroups are not measured (throws InvalidArgument).
Cost measure(std::span<const Plan> plans, std::int64_t element_bytes, const CostModel& model);

}  // namespace tutti
