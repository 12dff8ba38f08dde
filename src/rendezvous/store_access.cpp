// store_access.cpp: the tcp store, as rendezvous uses it.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/store_access.hpp"

#include <poll.h>

#include "store/tcp_server.hpp"
#include "store/tcp_store.hpp"
#include "wire/socket.hpp"

namespace tutti::rendezvous {

ServedStore serve_store(const wire::Address& address, const wire::Secret& secret, TimePoint deadline) {
  auto server = std::make_shared<TcpStoreServer>(TcpStoreServer::Options{.address = address, .secret = secret});
  const wire::Address served_at = server->address();
  return {.host = std::move(server), .address = served_at, .store = join_store(served_at, secret, deadline)};
}

std::shared_ptr<Store> join_store(const wire::HostPort& where, const wire::Secret& secret, TimePoint deadline) {
  return tcp_store({.server = where, .secret = secret, .deadline = deadline});
}

std::shared_ptr<Store> join_store(const wire::Address& address, const wire::Secret& secret, TimePoint deadline) {
  return join_store(wire::HostPort{.host = address.host(), .port = address.port()}, secret, deadline);
}

bool somebody_listens(const wire::Address& address, TimePoint deadline) {
  wire::Connecting connecting(address);
  while (connecting.check() == wire::Connecting::State::pending) {
    if (wire::wait_for(connecting.fd(), POLLOUT, deadline) == 0) return false;
  }
  return connecting.check() == wire::Connecting::State::connected;
}

}  // namespace tutti::rendezvous
