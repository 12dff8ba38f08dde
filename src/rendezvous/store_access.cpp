// store_access.cpp: the tcp store, as rendezvous uses it.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/store_access.hpp"

#include <algorithm>
#include <utility>

#include "store/tcp_server.hpp"
#include "store/tcp_store.hpp"
#include "wire/socket.hpp"

namespace tutti::rendezvous {

void StoreTroubles::add(const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  if (sentences_.size() < kept_max && std::ranges::find(sentences_, sentence) == sentences_.end())
    sentences_.push_back(sentence);
}

std::vector<std::string> StoreTroubles::take_new() {
  const std::lock_guard lock(mutex_);
  const auto first = sentences_.begin() + static_cast<std::ptrdiff_t>(std::exchange(taken_, sentences_.size()));
  return {first, sentences_.end()};
}

std::string StoreTroubles::all() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const std::string& sentence : sentences_) text += "; " + sentence;
  return text;
}

ServedStore serve_store(const wire::Address& address, const StoreGuard& guard, TimePoint deadline) {
  auto troubles = std::make_shared<StoreTroubles>();
  auto server = std::make_shared<TcpStoreServer>(
      TcpStoreServer::Options{.address = address,
                              .secret = guard.secret,
                              .encryption = guard.encryption,
                              .on_trouble = [troubles](const std::string& sentence) { troubles->add(sentence); }});
  const wire::Address served_at = server->address();
  return {.host = std::move(server),
          .address = served_at,
          .store = join_store(served_at, guard, deadline),
          .troubles = std::move(troubles)};
}

std::shared_ptr<Store> join_store(const wire::HostPort& where, const StoreGuard& guard, TimePoint deadline) {
  return tcp_store({.server = where, .secret = guard.secret, .encryption = guard.encryption, .deadline = deadline});
}

std::shared_ptr<Store> join_store(const wire::Address& address, const StoreGuard& guard, TimePoint deadline) {
  return join_store(wire::HostPort{.host = address.host(), .port = address.port()}, guard, deadline);
}

bool somebody_listens(const wire::Address& address, TimePoint deadline) {
  return wire::connect_once(address, deadline).second == 0;
}

}  // namespace tutti::rendezvous
