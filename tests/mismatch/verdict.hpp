// verdict.hpp: whether a program ended as it should have. Knows the calls and the endings, nothing of the library.
// SPDX-License-Identifier: Apache-2.0
//
// 1. A group whose ranks make the same calls: no error and right data, whatever happens in other groups.
// 2. A group whose ranks differ, with closing calls: Mismatch on every member.
// 3. A group whose ranks differ, without them: a member may end well, for it may have left before it met the others. Somebody
//    raises Mismatch or, when the group is left, the log names it. Where some ranks make more calls than others, those may
//    hear instead that a rank left without taking part (PeerLost or Aborted).
// 4. Everywhere: a call that ended well has the right data, as its caller understood the call; a failed call writes outputs
//    only; once a group has failed, every later call on it raises the same; no Timeout, no error in joining or leaving.
#pragma once

#include "play.hpp"

namespace tutti::mismatch {

/// `rule` is short and the same for all failures of a kind, so that they can be counted.
struct Violation {
  std::string rule{}, text{};
};

/// `log`: what the library wrote to stderr.
std::vector<Violation> judge(const Program& program, const Endings& endings, const std::string& log);

/// Of the members that raised Mismatch, how many were told the number of the first call that differed.
struct Naming {
  int told = 0, named = 0;
};
Naming naming_of(const Program& program, const Endings& endings);

}  // namespace tutti::mismatch
