// rendezvous.hpp: brings the ranks together, one way per kind of meeting point.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/boards.hpp"
#include "rendezvous/meeting.hpp"
#include "rendezvous/secret_source.hpp"

namespace tutti::rendezvous {

// Lives for one call of meet(); visits the meeting point.
class Rendezvous {
 public:
  Rendezvous(const Detected& detected, const Surroundings& surroundings, TimePoint deadline)
      : detected_(detected), around_(surroundings), deadline_(deadline) {}

  Met operator()(const NoRendezvous&) const;
  Met operator()(const LauncherStore& point) const;
  Met operator()(const FixedAddress& point) const;
  Met operator()(const PortWindow& point) const;
  Met operator()(const RecordInFile& point) const;
  Met operator()(const RecordInPrivateFile& point) const;
  Met operator()(const RecordInAgentStore& point) const;
  Met operator()(const RecordInPmi& point) const;
  Met operator()(const RecordInPmix& point) const;
  Met operator()(const RecordOnBoard& point) const;

 private:
  [[nodiscard]] bool is_root() const { return detected_.rank == 0; }
  [[nodiscard]] TimePoint within(Duration time) const {
    return std::min(deadline_, deadline_after(around_.clock.now(), time));
  }
  [[nodiscard]] BoardKey board_key() const;
  [[nodiscard]] StoreGuard guard_by(const FoundSecret& secret) const {
    return {.secret = secret.secret, .encryption = wire::encryption_from(around_.environment)};
  }
  // What the store of this meeting holds under nonce_key where the place to meet is known beforehand.
  [[nodiscard]] std::string meeting_name() const {
    return fmt::format("{}/{}", detected_.job, around_.earlier_connects);
  }
  [[nodiscard]] FoundSecret secret_for(const std::vector<wire::Address>& addresses) const;

  [[nodiscard]] Met serve_at(const FixedAddress& point, const std::vector<wire::Address>& addresses,
                             const FoundSecret& secret) const;
  [[nodiscard]] Met join_at(const FixedAddress& point, const wire::Address& address, const FoundSecret& secret) const;
  [[nodiscard]] Met serve_in_window(const PortWindow& point, const FoundSecret& secret) const;
  [[nodiscard]] Met join_in_window(const PortWindow& point, const FoundSecret& secret) const;

  // Rank 0 serves at `bind_to` and leaves a record; the others follow it. `secret` may be missing where the board keeps
  // secrets: then rank 0 makes one.
  [[nodiscard]] Met post_record(std::shared_ptr<Board> board, std::optional<FoundSecret> secret,
                                const wire::Address& bind_to) const;
  [[nodiscard]] Met follow_record(Board& board, const std::optional<FoundSecret>& secret) const;
  [[nodiscard]] Met by_record(std::shared_ptr<Board> board, std::optional<FoundSecret> secret,
                              const wire::Address& bind_to) const;

  // Loopback if all ranks are here, else an address that leads out of the machine.
  [[nodiscard]] wire::Address reachable_address(std::optional<wire::Address> meeting_point = {}) const;

  const Detected& detected_;
  const Surroundings& around_;
  TimePoint deadline_;
};

// The secret to follow a record with. One that was given is never overruled by one that was found, and what a board holds
// that does not keep secrets is none: anybody may have put it there. AuthenticationError where that leaves nothing.
FoundSecret secret_of(const RendezvousRecord& record, const Board& board, const std::optional<FoundSecret>& given);

// `at` is where the store is, as a numeric address; `how`, if any, tells how it was found.
Met make_met(const FoundSecret& secret, std::shared_ptr<Store> store, const wire::Address& at,
             std::string_view how = {});

}  // namespace tutti::rendezvous
