// tcp_store.hpp: a client of the tcp store.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <tutti/store.hpp>

#include "wire/address.hpp"
#include "wire/handshake.hpp"
#include "wire/secret.hpp"

namespace tutti {

struct TcpStoreOptions {
  wire::HostPort server;
  wire::Secret secret;
  wire::Encryption encryption = wire::Encryption::none;
  TimePoint deadline;  // to connect and authenticate by; the server may start later than its clients
};

// One connection that all threads share. One of the waiting threads reads for all of them, so no extra thread is
// needed. Throws RendezvousError if the server cannot be found, AuthenticationError if it is not ours. When the server
// is gone, every call that waits and every later one throws RendezvousError.
std::shared_ptr<Store> tcp_store(const TcpStoreOptions& options);

}  // namespace tutti
