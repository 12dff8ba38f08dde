// network.hpp: the links of the control network, and how messages travel over them: floods, routes, heartbeats.
// SPDX-License-Identifier: Apache-2.0
//
// Knows nothing of what the messages mean: control.hpp says how the network is laid out, and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/transport.hpp>

#include "control/control_options.hpp"
#include "control/floods.hpp"
#include "control/links.hpp"
#include "control/message.hpp"

namespace tutti::control {

class NetworkListener {
 public:
  /// A flood arrived for the first time, or this rank has sent it.
  virtual void on_flood(int origin, const FloodBody& body) = 0;
  virtual void on_routed(int origin, RoutedBody body) = 0;
  /// A linked peer's whole goodbye was forwarded; it waits for confirm_goodbye().
  virtual void on_goodbye_of(int peer) = 0;
  /// Nothing was heard of a linked peer for too long.
  virtual void on_silent(int peer, const std::string& why) = 0;

 protected:
  ~NetworkListener() = default;
};

class ControlNetwork {
 public:
  ControlNetwork(Transport& transport, const Clock& clock, const ControlOptions& options, NetworkListener& listener);

  void start();
  /// Heartbeats, silence, and links that are due to be replaced.
  void poll();
  [[nodiscard]] TimePoint next_timer() const;
  [[nodiscard]] TimePoint last_poll() const { return last_poll_; }
  /// Nothing is sent any more.
  void silence() { is_silent_ = true; }

  void flood(FloodBody body);
  void send(int to, RoutedBody body);
  /// What a peer sent. Throws MalformedMessage.
  void receive(int peer, std::span<const std::byte> bytes);
  void confirm_goodbye(int peer);

  [[nodiscard]] std::vector<int> peers() const { return links_.peers(); }
  [[nodiscard]] bool is_usable(int peer) const { return links_.usable(peer); }
  /// Never uses this link again. A peer that is only silent still hears what is decided about it, until stop_telling().
  void ban(int peer);
  void stop_telling(int peer) { quiet_.erase(peer); }
  /// Nothing is routed to a rank that is gone.
  void set_gone(int rank) { gone_.insert(rank); }
  /// Replaces links that are missing, now or a little later: others may leave, too.
  void mend();
  void mend_later();
  /// Call it before this rank's goodbye is flooded.
  void begin_leaving();
  /// Whether the peers have confirmed the goodbye, and nothing that this rank has forwarded can be lost with it.
  [[nodiscard]] bool may_leave() const {
    return unconfirmed_.empty() && !has_forwarded_ && mend_at_ == TimePoint::max();
  }
  /// How long this rank was stopped, if it has come back lately.
  [[nodiscard]] Duration was_away_for(TimePoint now) const;

 private:
  void post(int peer, std::span<const std::byte> bytes);
  void spread(const Flooded& message, int except);
  void route(Routed message, int came_from);
  void on_flooded(int peer, const Flooded& message);
  void open_link(int peer);
  void ask_for_confirmation(int peer);
  void confirm_forwarded();
  void note_lag(TimePoint now);
  [[nodiscard]] Duration silence_limit(const Links::Use& use) const;
  [[nodiscard]] std::string why_silent(int peer, Links::Use& use, TimePoint now);

  Transport& transport_;
  const Clock& clock_;
  ControlOptions options_;
  NetworkListener& listener_;
  int rank_, size_;
  Links links_;
  std::set<int> gone_;
  std::set<int> quiet_;  // accused of silence, their links are open: they still hear what is decided about them
  std::map<int, TimePoint> unanswered_;  // asked over others since, and not heard of
  std::set<int> straight_;               // their latest message came straight: that way is open
  FloodLog floods_;
  std::uint64_t next_flood_ = 1;
  TimePoint mend_at_ = TimePoint::max();
  std::set<int> unconfirmed_;       // linked peers that have yet to confirm this rank's goodbye
  std::vector<std::byte> goodbye_;  // its last part, as it was sent
  bool has_forwarded_ = false;      // floods of others or its own since then; not confirmed yet
  bool is_leaving_ = false, is_silent_ = false;
  TimePoint last_poll_{};
  Duration lag_{};         // the longest this rank was kept from its links, lately
  TimePoint came_back_{};  // from the last time that this rank was stopped,
  Duration away_{};        // for so long
};

}  // namespace tutti::control
