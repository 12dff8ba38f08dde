// service.hpp: how the tcp store's server answers requests; pure, so that tests and the fuzzer drive it without sockets.
// SPDX-License-Identifier: Apache-2.0
//
// A get or wait for a key that is not there is parked until somebody sets it, its client cancels it, or its client is gone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/protocol.hpp"
#include "store/table.hpp"

namespace tutti::store {

class Service {
 public:
  using ClientId = std::uint64_t;
  struct Answer {
    ClientId client;
    Reply reply;
  };

  // The answers that are due now: to this client, and to those who waited for what it set. MalformedMessage if the client
  // parks the same id twice.
  std::vector<Answer> handle(ClientId client, Request request);
  // Forgets what the client waits for.
  void gone(ClientId client);

  [[nodiscard]] std::size_t parked_count() const;
  // Requests that give an empty service the values of this one, and those that wait here.
  struct Asked {
    ClientId client;
    Request request;
  };
  [[nodiscard]] std::vector<Asked> rebuilding() const;

 private:
  struct Waiter {
    ClientId client;
    std::uint64_t id;
    Request::Kind kind;
  };

  Reply answer(const Request& request);
  void park(ClientId client, const Request& request);
  void cancel(ClientId client, std::uint64_t id);
  void drop_waiter(const std::string& key, ClientId client, std::uint64_t id);
  void wake(const std::string& key, std::vector<Answer>& answers);

  Table table_;
  std::map<std::string, std::vector<Waiter>> waiters_;
  std::unordered_map<ClientId, std::map<std::uint64_t, std::string>> parked_;  // the keys each client waits for, by id
};

}  // namespace tutti::store
