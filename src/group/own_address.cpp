// own_address.cpp: loopback where it was shown to join all ranks, otherwise the interface that leads to the meeting point.
// SPDX-License-Identifier: Apache-2.0
#include "group/own_address.hpp"

#include <algorithm>

#include "wire/interfaces.hpp"
#include "wire/loopback.hpp"

namespace tutti {
namespace {

/// Whether every rank reaches every other over loopback. Neither a host's name nor a launcher's word tells: loopback joins the
/// processes of one network namespace, and only where it is up.
bool all_share_loopback(Connector& connector, TimePoint deadline) {
  const std::string own = wire::loopback_problem().empty() ? wire::network_identity() : "";
  const std::vector<std::string> networks = connector.exchange(own, deadline);
  return !networks[0].empty() && std::ranges::count(networks, networks[0]) == std::ssize(networks);
}

}  // namespace

wire::Address find_own_address(Connector& connector, const Environment& environment, TimePoint deadline) {
  const bool on_loopback = all_share_loopback(connector, deadline);  // all ranks ask, whatever each wishes for itself
  wire::BindWish wish;
  wish.wish = environment.get("TUTTI_INTERFACE").value_or("");
  if (wish.wish.empty() && on_loopback && connector.place().node_count == 1) return wire::Address::loopback();
  if (const std::string host = connector.meeting_host(); !host.empty()) {
    wish.meeting_point = wire::Address::from_numeric(host, 1);
    if (wish.meeting_point) wish.route = wire::route_to(*wish.meeting_point);
  }
  return wire::choose_address(wire::list_interfaces(), wish);
}

}  // namespace tutti
