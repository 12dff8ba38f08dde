// port_window.cpp: meeting on rank 0's node, on one of a few ports that follow from the job's name.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include <tutti/error.hpp>

#include "rendezvous/rendezvous.hpp"
#include "rendezvous/store_access.hpp"

namespace tutti::rendezvous {

using std::chrono::milliseconds;
using std::chrono::seconds;

Met Rendezvous::operator()(const PortWindow& point) const {
  // Across nodes, too: the home where the key file lies is commonly shared there. Where it is not, the handshake fails.
  FoundSecret secret = given_or_key_file_secret(around_.environment);
  secret.serves_one_machine = false;
  return is_root() ? serve_in_window(point, secret) : join_in_window(point, secret);
}

Met Rendezvous::serve_in_window(const PortWindow& point, const FoundSecret& secret) const {
  const auto addresses = wire::resolve({.host = point.host, .port = 0}, deadline_);
  const auto mine = std::ranges::find_if(addresses, is_local);
  const wire::Address base = mine != addresses.end() ? *mine : reachable_address();
  std::string why;
  for (int i = 0; i < point.ports; ++i) {
    try {
      const auto port = static_cast<std::uint16_t>(point.first_port + i);
      ServedStore served = serve_store(base.with_port(port), secret.secret, deadline_);
      Met met = make_met(secret, std::move(served.store), served.address);
      met.store->set(nonce_key, meeting_name(), deadline_);
      met.host = std::move(served.host);
      met.troubles = std::move(served.troubles);
      return met;
    } catch (const RendezvousError& error) {
      why = error.what();
    }
  }
  throw RendezvousError(fmt::format("no port from {} to {} is free on {}: {}; give init_method \"tcp://host:port\"",
                                    point.first_port, point.first_port + point.ports - 1, point.host, why));
}

// UnauthenticatedConnections on a port of the window fail the handshake, other jobs of ours do not know the job's name.
Met Rendezvous::join_in_window(const PortWindow& point, const FoundSecret& secret) const {
  const auto addresses = wire::resolve({.host = point.host, .port = 0}, deadline_);
  std::string why = "nobody listens";
  for (int attempt = 0; around_.clock.now() < deadline_; ++attempt) {
    const auto port = static_cast<std::uint16_t>(point.first_port + attempt % point.ports);
    for (const wire::Address& address : addresses) {
      try {
        if (!somebody_listens(address.with_port(port), within(seconds(1)))) continue;
        auto store = join_store(address.with_port(port), secret.secret, within(seconds(2)));
        if (store->get(nonce_key, within(seconds(2))) == meeting_name()) {
          return make_met(secret, std::move(store), address.with_port(port));
        }
      } catch (const Error& error) {
        why = error.what();
      }
    }
    if (attempt % point.ports == point.ports - 1) std::this_thread::sleep_for(milliseconds(20));
  }
  throw RendezvousError(
      fmt::format("rank 0 was not found on {}, ports {} to {}: {}; if the nodes do not share the home "
                  "folder give all ranks the same TUTTI_SECRET, or use srun --mpi=pmi2",
                  point.host, point.first_port, point.first_port + point.ports - 1, why));
}

}  // namespace tutti::rendezvous
