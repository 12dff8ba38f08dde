// tcp_server.hpp: the server of the tcp store, one thread for thousands of clients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <tutti/clock.hpp>

#include "base/unique_fd.hpp"
#include "wire/address.hpp"
#include "wire/secret.hpp"

namespace tutti {

// 1. It listens on exactly the address asked for; port 0 takes a free one.
// 2. A connection is a stranger until it has proved that it knows the secret. UnauthenticatedConnections have `unauthenticated_timeout` for that,
//    and beyond `unauthenticated_max`, or an eighth of the descriptors this process may have, the oldest makes room for the newest
//    as soon as it had `unauthenticated_time_min`; until then the newest waits at the door. Nothing a stranger sends reaches the
//    store; one that greets like a rank and does not know the secret is reported.
// 3. Whatever one client does harms only its own connection.
//    Should no connection come in any more, those that are there are served on.
// 4. Waiting costs the server nothing but memory.
//
// The destructor closes all connections and joins the thread.
class TcpStoreServer {
 public:
  struct Options {
    wire::Address address = wire::Address::loopback();
    wire::Secret secret;
    Duration unauthenticated_timeout = std::chrono::seconds(5);
    Duration unauthenticated_time_min = std::chrono::seconds(1);
    std::size_t unauthenticated_max = 4096;
    // What people should know, in a sentence: that somebody failed to authenticate, and from where; that descriptors ran
    // out. On the server's thread.
    std::function<void(const std::string& sentence)> on_trouble = {};
  };

  // Throws RendezvousError that names the address if it cannot listen there.
  explicit TcpStoreServer(const Options& options);
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;
  ~TcpStoreServer();

  [[nodiscard]] const wire::Address& address() const { return address_; }  // with the port in use

 private:
  wire::Address address_;
  UniqueFd stop_;  // an eventfd
  std::thread thread_;
};

}  // namespace tutti
