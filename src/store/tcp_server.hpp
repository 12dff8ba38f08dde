// tcp_server.hpp: the server of the tcp store, one thread for thousands of clients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <thread>

#include <tutti/clock.hpp>

#include "base/unique_fd.hpp"
#include "wire/address.hpp"
#include "wire/secret.hpp"

namespace tutti {

// 1. It listens on exactly the address asked for; port 0 takes a free one.
// 2. A connection is a stranger until it has proved that it knows the secret. Strangers have `stranger_timeout` for that,
//    and beyond `strangers_max` the oldest makes room for the newest. Nothing a stranger sends reaches the store.
// 3. Whatever one client does harms only its own connection.
// 4. Waiting costs the server nothing but memory.
//
// The destructor closes all connections and joins the thread.
class TcpStoreServer {
 public:
  struct Options {
    wire::Address address = wire::Address::loopback();
    wire::Secret secret;
    Duration stranger_timeout = std::chrono::seconds(5);
    std::size_t strangers_max = 4096;
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
