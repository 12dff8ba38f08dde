// interfaces.hpp: the network interfaces of this machine, and which of them to bind to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/address.hpp"

namespace tutti::wire {

// One entry per address: an interface with an IPv4 and an IPv6 address is two.
struct Interface {
  std::string name;
  Address address;  // port 0
  unsigned prefix_bits = 0;
  bool up = true;
};

std::vector<Interface> list_interfaces();

// The local address from which the kernel would reach `target`; nullopt without a route. Nothing is sent.
std::optional<Address> route_to(const Address& target);

struct BindWish {
  // TUTTI_INTERFACE: names, addresses or networks, separated by commas, the first that fits: "ib0,10.1.0.0/16,::1".
  std::string wish = {};
  std::optional<Address> meeting_point = {};
  std::optional<Address> route = {};  // route_to(meeting_point)
};

// The address to bind to, port 0. A pure function:
// 1. what the wish names, also where it would not be chosen by itself;
// 2. loopback, if the meeting point is on loopback: all ranks are on this machine;
// 3. the meeting point's own address, or the one that routes to it;
// 4. the first interface that is up and leads out of the machine: no loopback, container bridge or virtual pair; global
//    addresses before link-local ones, IPv4 before IPv6;
// 5. loopback.
// Throws RendezvousError that lists what there is, if nothing fits the wish.
Address choose_address(const std::vector<Interface>& interfaces, const BindWish& wish);

// Whether an interface of that name joins containers or virtual machines of this host instead of hosts.
bool is_virtual_interface(std::string_view name);

}  // namespace tutti::wire
