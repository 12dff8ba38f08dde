// survey.hpp: which members of a group are left, and whether they may go on without the others.
// SPDX-License-Identifier: Apache-2.0
//
// A rank that cannot be reached may live on the other side of a network cut, and see this side as lost. Two parts of one group must never
// both go on, as both would write results. So a part goes on only if it has more ranks than are unconfirmed, or as many and the lowest rank
// of all. Ranks whose end is known (from the launcher, or from the system of the same host) or that left do not count.
#pragma once

#include <vector>

#include "control/control.hpp"

namespace tutti {

struct Survey {  // ranks in the world
  std::vector<int> survivors = {};
  std::vector<int> unconfirmed = {};  // lost, but perhaps alive: a link is cut, or they are stopped
  bool is_settled = true;             // no accusation is undecided

  friend bool operator==(const Survey&, const Survey&) = default;
};

Survey survey(const control::Control& control, const std::vector<int>& members);
bool may_go_on(const Survey& found);

}  // namespace tutti
