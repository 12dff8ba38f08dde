// tcp_poller.hpp: which sockets have something to do, and how a thread sleeps until one has.
// SPDX-License-Identifier: Apache-2.0
//
// The listening socket, unauthenticated connections and control connections are watched by an epoll of their own, which the other
// one watches: a look at one sees everything, and a wait can be for control alone.
//
// Thread rule: as its owner, except wait() and wake(), which any thread may call while another one works.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>

#include <tutti/clock.hpp>
#include <tutti/transport.hpp>

#include "base/process_fd.hpp"

namespace tutti::link {

class TcpPoller {
 public:
  enum class Side : std::uint8_t { data, control };

  TcpPoller();

  /// `events` as epoll takes them; `owner` comes back from look(). False: errno says why.
  bool watch(int fd, std::uint32_t events, void* owner, Side side);
  void unwatch(int fd, Side side);
  /// Calls `found(owner, events)` for every socket with news.
  template <class Found>
  void look(Found found) {
    look_at(epoll_, found);
  }

  /// What wait() must not sleep over, and until when it may sleep.
  void set_waiting(bool data, bool control, TimePoint deadline);
  void mark_work(Side side) { (side == Side::data ? data_waits_ : control_waits_) = true; }
  /// Sleeps until there is work, wake() or `until`; takes nothing away from the thread that works.
  void wait(TimePoint until, Transport::Events events, const Clock& clock);
  /// Ends a wait that is under way, or the next one: of each kind of events one.
  void wake();

 private:
  template <class Found>
  void look_at(const ProcessFd& epoll, Found& found) {
    std::array<epoll_event, 64> events;
    const int count = epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.ptr == &control_epoll_) {
        look_at(control_epoll_, found);
      } else {
        found(event.data.ptr, event.events);
      }
    }
  }
  [[nodiscard]] const ProcessFd& epoll_of(Side side) const { return side == Side::data ? epoll_ : control_epoll_; }

  ProcessFd epoll_, control_epoll_;
  ProcessFd wake_all_, wake_control_;
  std::atomic<bool> data_waits_ = false, control_waits_ = false;
  std::atomic<std::int64_t> next_deadline_ns_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace tutti::link
