// agreement.hpp: whether all members tell the same story.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "truth.hpp"

namespace tutti::sim {

// What was violated, in words.
std::vector<std::string> check_agreement(const Scenario& scenario, const History& history, const Truth& truth);

}  // namespace tutti::sim
