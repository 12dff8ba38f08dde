// meeting.hpp: from a meeting point to a store that all ranks share, and the secret that guards it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <tutti/clock.hpp>
#include <tutti/store.hpp>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "rendezvous/detect.hpp"
#include "rendezvous/record.hpp"
#include "rendezvous/store_access.hpp"
#include "wire/secret.hpp"

namespace tutti::rendezvous {

// What a process is given from outside.
struct Surroundings {
  const Environment& environment;
  const Clock& clock;
  // How many times this process has met others before. Ranks do so equally often, so the number tells one meeting from
  // the last at the same place.
  std::uint64_t earlier_connects = 0;
  Log log{};
};

// A store that this rank and all others talk to.
struct Met {
  std::shared_ptr<Store> store;  // with a prefix of this job's own where the store is not
  wire::Secret secret;
  std::string where;          // "rank 0's store at 127.0.0.1:29500"
  std::string meeting_host;   // its address alone, as a number
  std::string secret_source;  // "TUTTI_SECRET"
  bool secret_serves_one_machine = false;
  std::shared_ptr<void> host{};               // on the rank that serves the store: what serves it
  std::shared_ptr<StoreTroubles> troubles{};  // there, too
  std::shared_ptr<Board> board{};             // on rank 0, where there is one
};

// Throws RendezvousError or AuthenticationError.
Met meet(const Detected& detected, const Surroundings& surroundings, TimePoint deadline);

}  // namespace tutti::rendezvous
