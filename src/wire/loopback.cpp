// loopback.cpp: looking at the network namespace, and trying its loopback.
// SPDX-License-Identifier: Apache-2.0
#include "wire/loopback.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <system_error>

#include <tutti/error.hpp>

#include "base/system_files.hpp"
#include "wire/socket.hpp"

namespace tutti::wire {

std::string network_identity() {
  const std::string boot = boot_id();
  std::error_code error;
  const std::string network = std::filesystem::read_symlink("/proc/thread-self/ns/net", error).string();
  return boot.empty() || network.empty() ? "" : boot + " " + network;
}

std::string loopback_problem() {
  constexpr Duration answer_after_at_most =
      std::chrono::seconds(2);  // it takes microseconds, unless a firewall swallows it
  const TimePoint deadline = std::chrono::steady_clock::now() + answer_after_at_most;
  std::string why;
  try {
    const Listener listener(Address::loopback());
    const int error = connect_once(listener.address(), deadline).second;
    if (error == 0) return "";
    why = std::generic_category().message(error);
  } catch (const Error& error) {
    why = error.what();
  }
  return fmt::format(
      "the loopback interface of this host, or of this container's network namespace, does not work (connecting to {}: "
      "{}), and processes of one host reach each other over it; bring it up (`ip link set lo up`), or allow it in the "
      "firewall",
      Address::loopback().host(), why);
}

void require_loopback() {
  if (const std::string problem = loopback_problem(); !problem.empty()) throw RendezvousError(problem);
}

}  // namespace tutti::wire
