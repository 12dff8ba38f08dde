// agreement.hpp: whether all members report the same cause.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "truth.hpp"

namespace tutti::sim {

// What was violated, as text.
std::vector<std::string> check_agreement(const Scenario& scenario, const History& history, const Truth& truth);

}  // namespace tutti::sim
