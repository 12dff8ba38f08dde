// doorbell.hpp: sleeping until a local peer has news, and waking one that sleeps.
// SPDX-License-Identifier: Apache-2.0
//
// A rank that finds nothing to do announces that it sleeps, looks once more, and waits on its doorbell (a futex in its own
// arena). A rank that published something looks whether those it concerns sleep, and notifies only then: a line that is
// hardly ever written and so stays in the reader's cache.
//
//   sleeper: prepare() · look at everything again · sleep(until), or leave()
//   waker:   publish (release) · ring(header)
//
// The fence between "publish" and "look who sleeps", and between "I sleep" and "look again", makes one of the two see the
// other. doorbell_protocol_test.cpp tries every order of it.
//
// Thread rule: one thread uses a Bell at a time; anyone notifies. A ring may come late and wake for nothing: look again.
#pragma once

#include <atomic>

#include <tutti/clock.hpp>

#include "shm/arena.hpp"
#include "shm/atomics.hpp"

namespace tutti::shm {

/// What is said over the two words, on any atomics. Waiting on the word and waking are the caller's.
template <class Atomics>
struct DoorbellProtocol {
  using Word = typename Atomics::Word;

  /// Returns the doorbell's count, for the sleep.
  static std::uint32_t announce(Word& doorbell, Word& asleep) {
    asleep.store(1, std::memory_order_relaxed);
    Atomics::fence();
    // A ring that is counted here was for something published before it: acquire lets the look that follows see that.
    return doorbell.load(std::memory_order_acquire);
  }
  static void leave(Word& asleep) { asleep.store(0, std::memory_order_relaxed); }
  /// After the fence: whether the waker has to count a ring and wake.
  static bool is_asleep(const Word& asleep) { return asleep.load(std::memory_order_relaxed) != 0; }
  static void count_notification(Word& doorbell) { doorbell.fetch_add(1, std::memory_order_release); }
};

class Doorbell {
 public:
  explicit Doorbell(ArenaHeader& own) : own_(own) {}
  /// Announces the sleep. What was published before a ring that this call does not see is seen by a look after it.
  void prepare();
  /// Sleeps until notified, `until`, or at once if it was notified since prepare(). Ends the announcement.
  void sleep(TimePoint until);
  void leave();

 private:
  ArenaHeader& own_;
  std::uint32_t heard_ = 0;
};

inline void fence_before_notify() { MachineAtomics::fence(); }

/// Wakes the rank, which was seen asleep.
void wake(ArenaHeader& peer);

/// After publishing and one fence_before_notify() for any number of peers: wakes the rank if it sleeps.
inline void notify_after_fence(ArenaHeader& peer) {
  if (DoorbellProtocol<MachineAtomics>::is_asleep(peer.asleep)) [[unlikely]]
    wake(peer);
}

/// After publishing (with release order or stronger): wakes the rank if it sleeps.
inline void notify(ArenaHeader& peer) {
  fence_before_notify();
  notify_after_fence(peer);
}

}  // namespace tutti::shm
