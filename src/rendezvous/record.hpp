// record.hpp: what rank 0 leaves for the others to find: where its store is, how to recognise it, perhaps the secret.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tutti/clock.hpp>

#include "wire/address.hpp"
#include "wire/secret.hpp"

namespace tutti::rendezvous {

struct RendezvousRecord {
  wire::HostPort where{};  // of the store
  std::string nonce{};     // the store of this record holds it under nonce_key: an old record leads nowhere
  std::optional<wire::Secret> secret{};  // only on boards that nobody outside of the job can read
  std::string writer{};                  // "pid 4711 on host a", for people

  // With a nonce of its own, still without an address.
  static RendezvousRecord by(std::string_view writer);

  // One line of printable characters without blanks, '=' or ';', which every launcher's key-value space accepts.
  [[nodiscard]] std::string text() const;
  // Nothing if it is no record, or one of another version.
  static std::optional<RendezvousRecord> parse(std::string_view text);
};

// What a line or a file name cannot hold becomes an underscore; cut to 200 characters.
std::string printable(std::string_view text);

inline constexpr std::string_view nonce_key = "rendezvous/nonce";

std::string make_nonce();

// Where a record is left. One object per process; rank 0 posts, the others fetch.
class Board {
 public:
  virtual ~Board() = default;
  virtual void post(const RendezvousRecord& record, TimePoint deadline) = 0;
  // Waits for a record. What it returns may be stale where an earlier job can have written on the same board.
  virtual RendezvousRecord fetch(TimePoint deadline) = 0;
  // The record rank 0 finds in the place of its own, if another rank 0 wrote over it.
  virtual std::optional<RendezvousRecord> overwritten_by() { return std::nullopt; }
  // The meeting is over; rank 0 takes its record away.
  virtual void clear() {}
  // Whether the launcher keeps what is on the board within the job, so that a secret may be on it.
  [[nodiscard]] virtual bool keeps_secrets() const { return false; }
  [[nodiscard]] virtual std::string describe() const = 0;
};

}  // namespace tutti::rendezvous
