// waiting.hpp: how a thread waits: it spins, then yields its core, then sleeps on a link or a doorbell. Every constant of it is here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <utility>

#include <tutti/clock.hpp>

#include "shm/atomics.hpp"

namespace tutti {

/// Told that a call is not over at once: its thread is about to wait for the runtime's lock, or has it and yields its core. May be
/// told twice.
struct BlockingHook {
  virtual void before_blocking() = 0;

 protected:
  ~BlockingHook() = default;
};

namespace waiting {

using namespace std::chrono_literals;

// A blocking call polls for so long before it is tracked. A poll takes some half a microsecond. Even a core of one's own may be
// shared for a while with another program, or with the very rank that is awaited, so the core is yielded now and then.
inline constexpr int polls_with_a_core_each = 4000;
inline constexpr int polls_before_yield = 32;
inline constexpr int polls_per_yield = 16;
inline constexpr int polls_with_fewer_cores = 1000;  // each yields the core to another rank
inline constexpr int polls_per_look_at_clock = 16;
inline constexpr Duration spin_budget = 2ms;
inline constexpr int spins_for_a_message = 16;
inline constexpr int spins_at_once = 64;  // some half a microsecond, too

// Afterwards, rounds of progress that moved nothing.
inline constexpr int spin_rounds = 200;  // without a pause, when there is a core for each rank
inline constexpr int yield_rounds = 4;
// Among local peers with a core each, some 2 ms: a thread that sleeps is woken on the core of the rank that wakes it, and then both
// share that one until the system notices.
inline constexpr int yield_rounds_of_local_peers = 2000;
inline constexpr int yield_rounds_oversubscribed =
    200;  // each lets another rank run, which takes less time than to wake one

// Then it sleeps.
inline constexpr Duration polling_nap = 20us;  // while calls go on only by being polled (Backend::must_be_polled)
inline constexpr Duration short_nap = 200us;   // while links and local peers may both have news
inline constexpr Duration message_nap = 1ms;   // of the service thread, while messages are started one after the other
inline constexpr Duration control_nap = 2ms;   // of the service thread, while it sleeps where links are not heard
inline constexpr Duration nap = 20ms;          // the longest sleep while a call waits: deadlines and probes need a look
inline constexpr Duration idle_nap = 200ms;    // the same while nothing is under way: heartbeats

/// Where the ranks of this host stand.
struct Surroundings {
  bool oversubscribed = false;  // more ranks than cores: a rank that spins keeps the one that it waits for from running
  bool local_peers = false;     // some share memory with this rank
};

enum class Step : std::uint8_t { spin, yield, sleep };
/// What to do after so many rounds of progress in a row that moved nothing.
inline Step step_after(int idle_rounds, const Surroundings& where) {
  const int spins = where.oversubscribed ? 0 : spin_rounds;
  const int yields = !where.local_peers     ? yield_rounds
                     : where.oversubscribed ? yield_rounds_oversubscribed
                                            : yield_rounds_of_local_peers;
  return idle_rounds <= spins ? Step::spin : idle_rounds <= spins + yields ? Step::yield : Step::sleep;
}

/// Polls `work` until it is over (true) or the budget is used up. The rank's lock is held meanwhile, and a thread that gets the core may
/// keep it for a while: so the clock is looked at whenever the core was yielded.
struct Spinning {
  const Clock& clock;
  bool oversubscribed = false;
  BlockingHook* hook = nullptr;
};
template <class Work>
bool poll_within_budget(Work& work, Spinning how) {
  const int polls = how.oversubscribed ? polls_with_fewer_cores : polls_with_a_core_each;
  TimePoint begin{};
  for (int i = 0; i < polls; ++i) {
    if (work.poll()) return true;
    if (!how.oversubscribed && (i < polls_before_yield || i % polls_per_yield != 0)) {
      shm::pause();
      continue;
    }
    if (how.hook != nullptr) std::exchange(how.hook, nullptr)->before_blocking();
    if (!how.oversubscribed || i % polls_per_look_at_clock == polls_per_look_at_clock - 1) {
      const TimePoint now = how.clock.now();
      if (begin == TimePoint{}) begin = now;
      if (now - begin > spin_budget) return false;
    }
    sched_yield();
  }
  return false;
}

}  // namespace waiting
}  // namespace tutti
