// reach.hpp: which hosts reach which, tried before any rank starts.
// SPDX-License-Identifier: Apache-2.0
//
// An agent listens at every address that its ranks might use, and says a random token to each process that connects. The other
// agents connect to all of them. A connection that is answered by another token, as by a bridge that has the same
// address on every host, does not count.
#pragma once

#include <poll.h>

#include <deque>
#include <list>
#include <string>
#include <vector>

#include <tutti/clock.hpp>

#include "base/environment.hpp"
#include "launch/job_order.hpp"
#include "wire/interfaces.hpp"
#include "wire/socket.hpp"

namespace tutti::launch {

inline constexpr std::size_t token_bytes = 16;

// The addresses at which other hosts may reach this one, the best first: what TUTTI_INTERFACE names; otherwise those that
// lead out of the machine, then bridges, and loopback last. Throws RendezvousError if TUTTI_INTERFACE names none.
std::vector<wire::Address> candidate_addresses(const std::vector<wire::Interface>& interfaces, const std::string& wish);

class ReachListeners {
 public:
  // Throws RendezvousError if no address can be listened on.
  explicit ReachListeners(const std::vector<wire::Address>& candidates);

  [[nodiscard]] const std::string& token() const { return token_; }
  [[nodiscard]] std::vector<std::string> addresses() const;
  void watch(std::vector<pollfd>& into) const;
  void serve();

 private:
  std::string token_;
  std::deque<wire::Listener> listeners_;
  std::deque<UniqueFd> answered_;  // the latest, which stay open until they were read
};

// Connects from one host to all others; non-blocking.
class ReachProbe {
 public:
  ReachProbe(const ReachTable& table, std::size_t own_host, TimePoint deadline);

  void watch(std::vector<pollfd>& into) const;
  [[nodiscard]] TimePoint next_timer() const { return deadline_; }
  void serve();
  [[nodiscard]] bool is_done() const { return running_.empty() && next_ == attempts_.size(); }
  [[nodiscard]] const ReachReport& report() const { return report_; }

 private:
  struct Attempt {
    std::size_t host = 0, address = 0;
  };
  struct Running {
    Attempt attempt;
    wire::Connecting connecting;
    UniqueFd socket = {};
    std::string heard = {};
  };

  void start_more();
  // Whether it is over.
  bool advance(Running& running);
  void fail(const Attempt& attempt, const std::string& why);

  ReachTable table_;
  TimePoint deadline_;
  std::vector<Attempt> attempts_;
  std::size_t next_ = 0;
  std::list<Running> running_;
  ReachReport report_;
};

// The address of each host that all others reach. Throws UsageError that names two hosts of which one does not reach the
// other, and what to try. `names` are the hosts as people call them; reports come from every host.
std::vector<wire::HostPort> choose_addresses(const std::vector<std::string>& names, const ReachTable& table,
                                             const std::vector<ReachReport>& reports);

}  // namespace tutti::launch
