// network.cpp: the links of the control network, and how messages travel over them.
// SPDX-License-Identifier: Apache-2.0
#include "control/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/overloaded.hpp"

namespace tutti::control {

ControlNetwork::ControlNetwork(Transport& transport, const Clock& clock, const ControlOptions& options,
                               NetworkListener& listener)
    : transport_(transport),
      clock_(clock),
      options_(options),
      listener_(listener),
      rank_(transport.rank()),
      size_(transport.size()),
      links_(rank_, size_) {}

void ControlNetwork::start() {
  last_poll_ = clock_.now();
  for (const int peer : links_.wanted()) {
    transport_.attach(peer);
    links_.add(peer, last_poll_);
  }
}

void ControlNetwork::post(int peer, std::span<const std::byte> bytes) {
  transport_.post(peer, bytes);
  links_.sent(peer, clock_.now());
}

void ControlNetwork::confirm_goodbye(int peer) { post(peer, encode(Seen{})); }

// ---- out

void ControlNetwork::flood(FloodBody body) {
  if (is_silent_) return;
  const Flooded message{rank_, next_flood_++, std::move(body)};
  floods_.is_new(rank_, message.number);
  spread(message, rank_);
  listener_.on_flood(rank_, message.body);
}

void ControlNetwork::spread(const Flooded& message, int except) {
  std::vector<std::byte> encoded = encode(message);
  for (const int peer : links_.peers()) {
    if (peer != except && peer != message.origin) post(peer, encoded);
  }
  for (const int peer : quiet_) post(peer, encoded);
  const bool is_own_goodbye = message.origin == rank_ && std::holds_alternative<Goodbye>(message.body);
  if (is_own_goodbye) goodbye_ = encoded;
  if (is_leaving_ && !is_own_goodbye) has_forwarded_ = true;
  floods_.keep(std::move(encoded));
}

void ControlNetwork::send(int to, RoutedBody body) {
  if (is_silent_) return;
  const bool asks = std::holds_alternative<Probe>(body) || std::holds_alternative<Join>(body) ||
                    std::holds_alternative<StoreAsked>(body) || std::holds_alternative<StoreOffered>(body);
  // A rank on the route may be stuck. Among many ranks, however, a late answer is usual on a busy machine, and another
  // connection for each pair of ranks would not help.
  constexpr int few_ranks = 32;
  const TimePoint now = clock_.now();
  const auto [asked, is_first] = asks ? unanswered_.try_emplace(to, now) : std::pair(unanswered_.end(), true);
  const bool unanswered = !is_first && (size_ <= few_ranks || now - asked->second >= options_.silence / 2);
  const bool straight = unanswered || straight_.contains(to);
  route({rank_, to, straight ? 0 : links_.hops_max(), std::move(body)}, rank_);
}

// If no link comes closer, the message is sent directly; the transport opens connections on demand.
void ControlNetwork::route(Routed message, int came_from) {
  if (message.to == rank_) {
    unanswered_.erase(message.origin);
    if (message.origin == came_from) {
      straight_.insert(message.origin);
    } else {
      straight_.erase(message.origin);
    }
    return listener_.on_routed(message.origin, std::move(message.body));
  }
  if (gone_.contains(message.to)) return;
  int hop = message.hops_left > 0 ? links_.next_hop(message.to, came_from) : -1;
  if (hop < 0) hop = message.to;
  if (!links_.usable(hop)) return;
  message.hops_left = std::max(message.hops_left - 1, 0);
  post(hop, encode(message));
}

// ---- in

void ControlNetwork::receive(int peer, std::span<const std::byte> bytes) {
  links_.heard(peer, clock_.now());
  Message message = decode(bytes, size_);
  std::visit(Overloaded{
                 [&](const Beat& beat) {
                   if (const auto use = links_.uses().find(peer); use != links_.uses().end())
                     use->second.lag = std::chrono::milliseconds(beat.lag_ms);
                 },
                 [&](const Link&) { open_link(peer); },
                 [&](const Flooded& flooded) { on_flooded(peer, flooded); },
                 [&](const Seen&) { unconfirmed_.erase(peer); },
                 [&](Routed& routed) { route(std::move(routed), peer); },
             },
             message);
}

// A goodbye is confirmed to its sender once it is forwarded and compared; it may have come over other ranks before.
void ControlNetwork::on_flooded(int peer, const Flooded& message) {
  if (floods_.is_new(message.origin, message.number)) {
    spread(message, peer);
    listener_.on_flood(message.origin, message.body);
  }
  const auto* const goodbye = std::get_if<Goodbye>(&message.body);
  if (goodbye != nullptr && !goodbye->more && message.origin == peer) listener_.on_goodbye_of(peer);
}

// ---- links

void ControlNetwork::ban(int peer) {
  links_.ban(peer);
  unconfirmed_.erase(peer);
}

// A rank that leaves needs nobody but the nearest rank on each side: they are told its goodbye and all that it has
// forwarded, and have to answer. So nothing is lost with it, however many ranks leave at the same time.
void ControlNetwork::mend() {
  mend_at_ = TimePoint::max();
  if (is_silent_) return;
  for (const int peer : is_leaving_ ? links_.nearest() : links_.wanted()) {
    if (links_.has(peer)) continue;
    transport_.attach(peer);
    post(peer, encode(Link{}));
    open_link(peer);
  }
}

// A rank that leaves itself does not wait: it passes on what the peer that left may not have read.
void ControlNetwork::mend_later() {
  const TimePoint now = clock_.now();
  mend_at_ = std::min(mend_at_, is_leaving_ ? now : now + options_.mend);
}

void ControlNetwork::begin_leaving() {
  is_leaving_ = true;
  mend();
  for (const int peer : links_.peers()) unconfirmed_.insert(peer);
}

// A peer answers a goodbye that comes from its origin, once for each time that it comes, and thereby confirms all that was
// sent to it before.
void ControlNetwork::ask_for_confirmation(int peer) {
  unconfirmed_.insert(peer);
  post(peer, goodbye_);
}

// A peer that leaves at the same time may not have read what this rank has forwarded since its goodbye.
void ControlNetwork::confirm_forwarded() {
  if (!is_leaving_ || !unconfirmed_.empty() || !std::exchange(has_forwarded_, false)) return;
  for (const int peer : links_.nearest()) {
    if (links_.has(peer)) ask_for_confirmation(peer);
  }
}

// A new link starts with the recent floods: the peer may have missed some while the network was partitioned.
void ControlNetwork::open_link(int peer) {
  if (!links_.usable(peer) || !links_.add(peer, clock_.now())) return;
  for (const auto& flood : floods_.recent()) {
    if (flood != goodbye_) post(peer, flood);
  }
  if (!goodbye_.empty()) ask_for_confirmation(peer);
}

// The lag of this rank: how much later than intended it polled its links, with old values fading out.
void ControlNetwork::note_lag(TimePoint now) {
  const Duration gap = now - last_poll_;
  lag_ = std::max(gap - options_.beat, lag_ - gap / 64);
  lag_ = std::max(lag_, Duration(0));
  if (gap <= options_.beat + options_.silence / 2) return;
  away_ = gap;
  came_back_ = now;
  for (auto& [peer, use] : links_.uses())
    use.heard = std::max(use.heard, now - options_.silence / 2);  // their beats may lie unread
}

// On an overloaded machine, this one or the peer's, silences get longer although nothing is wrong.
Duration ControlNetwork::silence_limit(const Links::Use& use) const {
  constexpr int lags = 4;
  const bool can_ask = static_cast<bool>(options_.life);
  const Duration limit = use.spoke || can_ask ? options_.silence : options_.first_contact;
  return std::max(limit, lags * (lag_ + use.lag));
}

// Empty for a peer that is known to live. The system's answer, where there is one, counts more than silence.
std::string ControlNetwork::why_silent(int peer, Links::Use& use, TimePoint now) {
  const Life life = options_.life ? options_.life(peer) : Life::unknown;
  const double seconds = std::chrono::duration<double>(now - use.heard).count();
  if (life == Life::stopped)
    return fmt::format("its process is stopped, and nothing was heard of it for {:.1f} s", seconds);
  if (life == Life::ended) return "its process has ended";
  const bool waits_for_first = life == Life::unknown && !use.spoke && now - use.heard < options_.first_contact;
  if (life == Life::running || waits_for_first || transport_.heard_from(peer)) {
    use.heard = waits_for_first ? use.heard : now;
    return {};
  }
  return fmt::format("nothing was heard of it for {:.1f} s", seconds);
}

Duration ControlNetwork::was_away_for(TimePoint now) const {
  return now - came_back_ < options_.silence ? away_ : Duration(0);
}

void ControlNetwork::poll() {
  const TimePoint now = clock_.now();
  if (now >= mend_at_) mend();
  confirm_forwarded();
  note_lag(now);
  const auto lag_ms = std::chrono::duration_cast<std::chrono::milliseconds>(lag_).count();
  std::map<int, std::string> silent;
  for (auto& [peer, use] : links_.uses()) {
    if (now - use.heard >= silence_limit(use)) {
      if (std::string why = why_silent(peer, use, now); !why.empty()) silent.emplace(peer, std::move(why));
    }
    if (now - use.sent >= options_.beat) {
      post(peer, encode(Beat{static_cast<std::uint32_t>(std::min<std::int64_t>(lag_ms, UINT32_MAX))}));
    }
  }
  for (const auto& [peer, why] : silent) {
    if (!links_.has(peer)) continue;  // gone together with one before it
    quiet_.insert(peer);
    listener_.on_silent(peer, why);
  }
  last_poll_ = now;
}

TimePoint ControlNetwork::next_timer() const {
  TimePoint next = mend_at_;
  for (const auto& [peer, use] : links_.uses())
    next = std::min({next, use.sent + options_.beat, use.heard + silence_limit(use)});
  return next;
}

}  // namespace tutti::control
