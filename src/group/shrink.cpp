// shrink.cpp: agreement among the members that are left.
// SPDX-License-Identifier: Apache-2.0
#include "group/shrink.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include <tutti/error.hpp>

#include "base/hash.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"
#include "group/share_memory.hpp"
#include "group/subgroup.hpp"
#include "group/survey.hpp"

namespace tutti {
namespace {

[[noreturn]] void throw_minority(const Survey& found, const Runtime& runtime) {
  const int first = found.unconfirmed.front();
  const std::string reason = fmt::format(
      "world rank{} {} cannot be reached, and nothing confirms that they have ended: they may go on without the {} "
      "that "
      "{} left here",
      found.unconfirmed.size() == 1 ? "" : "s", fmt::join(found.unconfirmed, ", "), found.survivors.size(),
      found.survivors.size() == 1 ? "is" : "are");
  throw PeerLost("shrink: " + reason, first, runtime.host_of(first), reason);
}

/// Waits until what is known suffices. Throws if it does not by the deadline, or if this rank itself was given up.
Survey settled_survey(Runtime& runtime, const std::vector<int>& members, int self, TimePoint deadline) {
  Survey found;
  bool is_given_up = false;
  runtime.wait(
      [&] {
        found = survey(runtime.control(), members);
        is_given_up = std::ranges::find(found.survivors, self) == found.survivors.end();
        return is_given_up || (found.is_settled && may_go_on(found));
      },
      deadline);
  if (is_given_up) {
    throw PeerLost(fmt::format("shrink: the others have given up this rank, world rank {}; it cannot come back", self),
                   self, runtime.host_of(self), "the others have given it up");
  }
  if (!may_go_on(found)) throw_minority(found, runtime);
  return found;
}

}  // namespace

std::shared_ptr<GroupCore> shrink_group(GroupCore& parent, Duration timeout) {
  Runtime& runtime = parent.runtime();
  runtime.check_alive();
  const std::vector<int>& members = parent.facts().world_of;
  const int self = members[static_cast<std::size_t>(parent.facts().rank)];
  const Duration limit = timeout > Duration::zero() ? timeout : runtime.parts().default_timeout;
  const TimePoint deadline = deadline_after(runtime.clock().now(), limit);
  const std::uint64_t key = Hash(parent.facts().id).add("shrink").value();
  while (true) {
    const Survey found = settled_survey(runtime, members, self, deadline);
    try {
      return join_group(parent, {.members = found.survivors, .key = key, .deadline = deadline, .timeout = timeout});
    } catch (const PeerLost& lost) {
      // All try again without the member that was lost meanwhile, or has left: this rank will hear of it, too.
      const auto is_among = [&](const Survey& each) {
        return std::ranges::find(each.survivors, lost.rank()) != each.survivors.end();
      };
      if (!is_among(found)) throw;
      if (!runtime.wait([&] { return !is_among(survey(runtime.control(), members)); }, deadline)) throw;
    }
  }
}

}  // namespace tutti
