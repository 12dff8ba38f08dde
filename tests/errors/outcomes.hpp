// outcomes.hpp: what a call threw on each rank, and how long that took.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <tutti/error.hpp>
#include <tutti/group.hpp>

#include "world.hpp"

namespace tutti::contract {

struct Outcome {
  enum class Kind { fine, invalid_argument, mismatch, timeout, peer_lost, aborted, other };
  Kind kind = Kind::fine;
  std::string text;
  double seconds = 0;
};

inline Outcome outcome_of(const std::function<void()>& call) {
  using Kind = Outcome::Kind;
  Outcome outcome;
  const auto begin = std::chrono::steady_clock::now();
  const auto note = [&](Kind kind, const std::exception& error) {
    outcome.kind = kind;
    outcome.text = error.what();
  };
  try {
    call();
  } catch (const InvalidArgument& error) {
    note(Kind::invalid_argument, error);
  } catch (const Mismatch& error) {
    note(Kind::mismatch, error);
  } catch (const Timeout& error) {
    note(Kind::timeout, error);
  } catch (const PeerLost& error) {
    note(Kind::peer_lost, error);
  } catch (const Aborted& error) {
    note(Kind::aborted, error);
  } catch (const std::exception& error) {
    note(Kind::other, error);
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

/// Runs `call` on every rank of a world of threads; the outcomes by rank.
inline std::vector<Outcome> outcomes_in(World& world, const std::function<void(Group&)>& call) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(world.size()));
  world.run([&](Group& group) { outcomes[static_cast<std::size_t>(group.rank())] = outcome_of([&] { call(group); }); });
  return outcomes;
}

}  // namespace tutti::contract
