// doorbell.hpp: how a rank sleeps until a local peer has news, and how a peer wakes it.
// SPDX-License-Identifier: Apache-2.0
//
// A rank without work announces that it sleeps, polls once more, and waits on its doorbell (a futex in its own arena).
// A rank that has published something reads the `asleep` word of each peer concerned and notifies the peer only if it
// is set. That word is hardly ever written, so it stays in the reader's cache.
//
//   sleeper: prepare() · poll everything again · sleep(until), or leave()
//   waker:   publish (release) · notify(header)
//
// Both sides have a full fence: the waker between publishing and reading `asleep`, the sleeper between setting `asleep`
// and polling again. So at least one of them sees the other. A waker takes the announcement away and then counts its notification,
// while the sleeper reads the count before it announces: whose announcement is taken has not read that count yet. So one waker is
// enough, and others need no system call while the sleeper waits for a core to wake on. doorbell_protocol_test.cpp tries every
// interleaving.
//
// Thread rule: one thread at a time uses a Doorbell; any thread notifies. A notification may come late and wake a rank
// without need: poll again.
#pragma once

#include <atomic>

#include <tutti/clock.hpp>

#include "shm/arena.hpp"
#include "shm/atomics.hpp"

namespace tutti::shm {

/// The protocol on the two words, for any atomics. The caller does the futex wait and wake.
template <class Atomics>
struct DoorbellProtocol {
  using Word = typename Atomics::Word;

  /// Returns the doorbell's count, for the sleep.
  static std::uint32_t announce(Word& doorbell, Word& asleep) {
    // A notification that is counted here follows what it announces: acquire lets the next poll see the published data.
    const std::uint32_t heard = doorbell.load(std::memory_order_acquire);
    asleep.store(1, std::memory_order_relaxed);
    Atomics::fence();
    return heard;
  }
  static void leave(Word& asleep) { asleep.store(0, std::memory_order_relaxed); }
  /// After the fence: whether the waker has to count a notification and wake the rank.
  static bool is_asleep(const Word& asleep) { return asleep.load(std::memory_order_relaxed) != 0; }
  /// Whether this waker is the one to do so.
  static bool take_announcement(Word& asleep) { return asleep.exchange(0, std::memory_order_relaxed) != 0; }
  static void count_notification(Word& doorbell) { doorbell.fetch_add(1, std::memory_order_release); }
};

class Doorbell {
 public:
  explicit Doorbell(ArenaHeader& own) : own_(own) {}
  /// Announces the sleep. A poll after this call sees whatever was published before a notification that this call
  /// missed.
  void prepare();
  /// Sleeps until notified, `until`, or at once if it was notified since prepare(). Ends the announcement.
  void sleep(TimePoint until);
  void leave();

 private:
  ArenaHeader& own_;
  std::uint32_t heard_ = 0;
};

inline void fence_before_notify() { MachineAtomics::fence(); }

/// Wakes all threads of a rank that sleep there.
void wake(ArenaHeader& peer);
/// The same for a rank whose `asleep` was set, unless another one does so.
void wake_once(ArenaHeader& peer);

/// After publishing and one fence_before_notify() for any number of peers: wakes the rank if it sleeps.
inline void notify_after_fence(ArenaHeader& peer) {
  if (DoorbellProtocol<MachineAtomics>::is_asleep(peer.asleep)) [[unlikely]]
    wake_once(peer);
}

/// After publishing (with release order or stronger): wakes the rank if it sleeps.
inline void notify(ArenaHeader& peer) {
  fence_before_notify();
  notify_after_fence(peer);
}

}  // namespace tutti::shm
