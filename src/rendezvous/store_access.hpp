// store_access.hpp: serving and joining the store of a job.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/store.hpp>

#include "wire/address.hpp"
#include "wire/handshake.hpp"
#include "wire/secret.hpp"

namespace tutti::rendezvous {

// What the server of a store has to tell people, each thing once. From any thread.
class StoreTroubles {
 public:
  void add(const std::string& sentence);
  std::vector<std::string> take_new();    // what came since the last call
  [[nodiscard]] std::string all() const;  // as the end of an error: "; somebody at …", or nothing

 private:
  static constexpr std::size_t kept_max = 8;

  mutable std::mutex mutex_;
  std::vector<std::string> sentences_;
  std::size_t taken_ = 0;
};

// A store that this process serves, on a thread of its own, and a connection to it like everybody else's.
struct ServedStore {
  std::shared_ptr<void> host;  // serves until it is dropped
  wire::Address address;       // with the port in use
  std::shared_ptr<Store> store;
  std::shared_ptr<StoreTroubles> troubles;
};

// What guards the connections of a store.
struct StoreGuard {
  wire::Secret secret;
  wire::Encryption encryption = wire::Encryption::none;
};

// Throws RendezvousError where the address cannot be listened on.
ServedStore serve_store(const wire::Address& address, const StoreGuard& guard, TimePoint deadline);

// Tries again while nobody listens. Throws RendezvousError by the deadline, AuthenticationError if the listening
// process does not know the secret.
std::shared_ptr<Store> join_store(const wire::HostPort& where, const StoreGuard& guard, TimePoint deadline);
std::shared_ptr<Store> join_store(const wire::Address& address, const StoreGuard& guard, TimePoint deadline);

// Whether something accepts connections there now.
bool somebody_listens(const wire::Address& address, TimePoint deadline);

}  // namespace tutti::rendezvous
