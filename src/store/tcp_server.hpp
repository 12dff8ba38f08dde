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
#include "wire/handshake.hpp"
#include "wire/secret.hpp"

namespace tutti {

// 1. It listens on exactly the address asked for; port 0 takes a free one.
// 2. A connection is unauthenticated until it has proved that it knows the secret, for which it has
//    `unauthenticated_timeout`. At most `unauthenticated_max` of them are open, and at most an eighth of the
//    descriptors that this process may have. Beyond that the oldest is closed for the newest once it is
//    `unauthenticated_time_min` old; until then the newest is not accepted. Nothing that an unauthenticated connection
//    sends reaches the store; one that speaks our protocol without the secret is reported.
// 3. Whatever one client does harms only its own connection. If no connection can be accepted any more, existing ones
//    are still served.
// 4. Waiting costs the server nothing but memory.
//
// The destructor closes all connections and joins the thread.
class TcpStoreServer {
 public:
  struct Options {
    wire::Address address = wire::Address::loopback();
    wire::Secret secret;
    wire::Encryption encryption = wire::Encryption::none;
    Duration unauthenticated_timeout = std::chrono::seconds(5);
    Duration unauthenticated_time_min = wire::unauthenticated_time_min;  // while others wait to be accepted
    std::size_t unauthenticated_max = 4096;
    // What people should know, in a sentence: that somebody failed to authenticate, and from where; that descriptors
    // ran out. On the server's thread.
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
