// store_access.hpp: serving and joining the store of a job.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <tutti/clock.hpp>
#include <tutti/store.hpp>

#include "wire/address.hpp"
#include "wire/secret.hpp"

namespace tutti::rendezvous {

// A store that this process serves, on a thread of its own, and a connection to it like everybody else's.
struct ServedStore {
  std::shared_ptr<void> host;  // serves until it is dropped
  wire::Address address;       // with the port in use
  std::shared_ptr<Store> store;
};

// Throws RendezvousError where the address cannot be listened on.
ServedStore serve_store(const wire::Address& address, const wire::Secret& secret, TimePoint deadline);

// Tries again while nobody listens. Throws RendezvousError by the deadline, AuthenticationError if whoever listens does
// not know the secret.
std::shared_ptr<Store> join_store(const wire::HostPort& where, const wire::Secret& secret, TimePoint deadline);
std::shared_ptr<Store> join_store(const wire::Address& address, const wire::Secret& secret, TimePoint deadline);

// Whether something accepts connections there now.
bool somebody_listens(const wire::Address& address, TimePoint deadline);

}  // namespace tutti::rendezvous
