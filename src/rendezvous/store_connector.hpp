// store_connector.hpp: a Connector whose barrier, broadcast and exchange go through a store.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tutti/connector.hpp>

#include "wire/secret.hpp"

namespace tutti::rendezvous {

class StoreConnector : public Connector {
 public:
  struct Parts {
    Place place;
    std::string description;
    std::string meeting_host;
    std::shared_ptr<Store> store;
    wire::Secret secret;
    std::shared_ptr<void> host = {};  // what serves the store, on the rank that does; kept as long as the connector
  };

  explicit StoreConnector(Parts parts) : parts_(std::move(parts)) {}
  // The store's client goes before the server it talks to, and the server not before the others have read the results of
  // the last calls (but within 5 s). A forked child lets go of neither: they are its parent's.
  ~StoreConnector() override;

  [[nodiscard]] const Place& place() const override { return parts_.place; }
  [[nodiscard]] std::string describe() const override { return parts_.description; }
  [[nodiscard]] std::string meeting_host() const override { return parts_.meeting_host; }
  [[nodiscard]] std::shared_ptr<Store> store() const override { return parts_.store; }
  [[nodiscard]] std::string_view secret() const override;

  void barrier(TimePoint deadline) override;
  std::string broadcast(std::string_view value, int root, TimePoint deadline) override;
  std::vector<std::string> exchange(std::string_view value, TimePoint deadline) override;

 private:
  enum class Keep { values, nothing };

  std::string meet(std::string_view value, Keep keep, TimePoint deadline);
  [[noreturn]] void throw_missing(std::string_view what, const std::string& prefix, TimePoint deadline);
  void sweep(TimePoint deadline);
  void left_meeting(const std::string& prefix);
  void expect_readers(const std::string& prefix);
  void count_out(const std::string& prefix, TimePoint deadline);
  void wait_for_readers() noexcept;
  [[nodiscard]] std::string next_prefix();
  void check_process() const;

  Parts parts_;
  pid_t process_ = getpid();
  std::uint64_t calls_ = 0;  // the same on every rank: calls are collective and in order
  // Keys of this rank: those of calls since the last meeting began, those of calls before, and those of calls that every
  // rank has left.
  std::vector<std::string> written_, written_before_, read_by_all_;
  std::vector<std::string> unread_;  // on the rank that serves the store: calls whose results some rank may still read
};

}  // namespace tutti::rendezvous
