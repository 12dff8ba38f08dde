// loopback.hpp: whether processes of this host reach each other over loopback, and which ones do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tutti::wire {

// Tells one network from another: processes with the same text have the same interfaces, loopback included. It names the machine
// (by its boot) and the network namespace: a host name says neither. Empty where the system does not tell.
std::string network_identity();

// Listens on loopback and connects to that. Empty if it works; else what failed and what to try. Without loopback, processes
// of one host do not reach each other by any of its addresses: the kernel sends what stays inside over loopback.
std::string loopback_problem();

// Throws that as a RendezvousError.
void require_loopback();

}  // namespace tutti::wire
