// bell.hpp: sleeping until a neighbour has news, and waking one that sleeps.
// SPDX-License-Identifier: Apache-2.0
//
// A rank that finds nothing to do announces that it sleeps, looks once more, and waits on its bell (a futex in its own
// arena). A rank that published something looks whether those it concerns sleep, and rings only then: a line that is
// hardly ever written and so stays in the reader's cache.
//
//   sleeper: prepare() · look at everything again · sleep(until), or leave()
//   waker:   publish (release) · ring(header)
//
// The fence between "publish" and "look who sleeps", and between "I sleep" and "look again", makes one of the two see the other.
#pragma once

#include <atomic>

#include <tutti/clock.hpp>

#include "shm/arena.hpp"

namespace tutti::shm {

class Bell {
 public:
  explicit Bell(ArenaHeader& own) : own_(own) {}
  /// Announces the sleep. What was published before a ring that this call does not see is seen by a look after it.
  void prepare();
  /// Sleeps until rung, `until`, or at once if it was rung since prepare(). Ends the announcement.
  void sleep(TimePoint until);
  void leave();

 private:
  ArenaHeader& own_;
  std::uint32_t heard_ = 0;
};

/// After publishing (with release order or stronger): wakes the rank if it sleeps. Fences once for any number of calls
/// where `fence` has been called by the caller itself.
void ring(ArenaHeader& peer);
inline void fence_before_ring() { std::atomic_thread_fence(std::memory_order_seq_cst); }
void ring_after_fence(ArenaHeader& peer);

}  // namespace tutti::shm
