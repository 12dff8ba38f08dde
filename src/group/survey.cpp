// survey.cpp: asks the control network about each member.
// SPDX-License-Identifier: Apache-2.0
#include "group/survey.hpp"

#include <algorithm>

namespace tutti {

Survey survey(const control::Control& control, const std::vector<int>& members) {
  using Loss = control::Control::Loss;
  Survey found;
  for (const int member : members) {
    found.is_settled = found.is_settled && !control.is_accused(member);
    const Loss loss = control.loss_of(member);
    if (loss == Loss::uncertain) found.unconfirmed.push_back(member);
    if (loss == Loss::none && !control.has_left(member)) found.survivors.push_back(member);
  }
  return found;
}

bool may_go_on(const Survey& found) {
  if (found.survivors.empty()) return false;
  if (found.unconfirmed.size() != found.survivors.size()) return found.survivors.size() > found.unconfirmed.size();
  return std::ranges::min(found.survivors) < std::ranges::min(found.unconfirmed);
}

}  // namespace tutti
