// print.hpp: a plan as text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plan/plan.hpp"

namespace tutti {

/// One line per step: number, what it does, and the steps it waits for.
std::string to_text(const Plan& plan);
/// One step, without its dependencies: "send output[0, 4) to 1 as #0".
std::string to_text(const Plan& plan, const Step& step);

}  // namespace tutti
