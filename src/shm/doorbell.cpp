// doorbell.cpp: futexes.
// SPDX-License-Identifier: Apache-2.0
#include "shm/doorbell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace tutti::shm {
namespace {

using Protocol = DoorbellProtocol<MachineAtomics>;

// Shared futexes: the kernel finds the waiter by file and offset, in whatever process and wherever it is mapped.
std::uint32_t* futex_word(std::atomic<std::uint32_t>& word) {
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
  return reinterpret_cast<std::uint32_t*>(&word);
}

}  // namespace

void Doorbell::prepare() { heard_ = Protocol::announce(own_.doorbell, own_.asleep); }

void Doorbell::sleep(TimePoint until) {
  // FUTEX_WAIT_BITSET takes a point in time of CLOCK_MONOTONIC, which is what steady_clock counts: an interrupted wait does not start over.
  const auto since_start = until.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_start);
  const timespec deadline{.tv_sec = static_cast<time_t>(seconds.count()),
                          .tv_nsec = static_cast<long>((since_start - seconds).count())};
  const bool forever = until == TimePoint::max();
  // Whatever it returns (notified, already notified, interrupted, too late), the caller looks at everything again.
  syscall(SYS_futex, futex_word(own_.doorbell), FUTEX_WAIT_BITSET, heard_, forever ? nullptr : &deadline, nullptr,
          FUTEX_BITSET_MATCH_ANY);
  leave();
}

void Doorbell::leave() { Protocol::leave(own_.asleep); }

void wake(ArenaHeader& peer) {
  Protocol::count_notification(peer.doorbell);
  syscall(SYS_futex, futex_word(peer.doorbell), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void wake_once(ArenaHeader& peer) {
  if (Protocol::take_announcement(peer.asleep)) wake(peer);
}

}  // namespace tutti::shm
