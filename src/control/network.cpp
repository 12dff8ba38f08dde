// network.cpp: the links of the control network, and what travels over them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "control/control.hpp"

namespace tutti::control {

namespace {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;  // clang 14 does not deduce it by itself

}  // namespace

void Control::post(int peer, std::span<const std::byte> bytes) {
  transport_->post(peer, bytes);
  links_.sent(peer, clock_->now());
}

// ---- out

void Control::flood(FloodBody body) {
  if (silenced()) return;
  const Flooded message{rank_, next_flood_++, std::move(body)};
  floods_.is_new(rank_, message.number);
  spread(message, rank_);
  on_flood(rank_, message.body);
}

void Control::spread(const Flooded& message, int except) {
  std::vector<std::byte> encoded = encode(message);
  for (const int peer : links_.peers()) {
    if (peer != except && peer != message.origin) post(peer, encoded);
  }
  for (const int peer : quiet_) post(peer, encoded);
  floods_.keep(std::move(encoded));
}

void Control::send(int to, RoutedBody body) {
  if (silenced()) return;
  const bool asks = std::holds_alternative<Probe>(body) || std::holds_alternative<Join>(body);
  // A rank on the route may be stuck. Among many ranks, however, a late answer is usual on a busy machine, and another
  // connection for each pair of ranks would not help.
  constexpr int few_ranks = 32;
  const TimePoint now = clock_->now();
  const auto [asked, is_first] = asks ? unanswered_.try_emplace(to, now) : std::pair(unanswered_.end(), true);
  const bool unanswered = !is_first && (size_ <= few_ranks || now - asked->second >= options_.silence / 2);
  const bool straight = unanswered || straight_.contains(to);
  route({rank_, to, straight ? 0 : links_.hops_max(), std::move(body)}, rank_);
}

// If no link comes closer, the message is sent directly; the transport opens connections on demand.
void Control::route(Routed message, int came_from) {
  if (message.to == rank_) {
    unanswered_.erase(message.origin);
    if (message.origin == came_from) {
      straight_.insert(message.origin);
    } else {
      straight_.erase(message.origin);
    }
    return on_routed(message.origin, std::move(message.body));
  }
  if (lost_.contains(message.to) || parted_.contains(message.to)) return;
  int hop = message.hops_left > 0 ? links_.next_hop(message.to, came_from) : -1;
  if (hop < 0) hop = message.to;
  if (!links_.usable(hop)) return;
  message.hops_left = std::max(message.hops_left - 1, 0);
  post(hop, encode(message));
}

// ---- in

void Control::received(int peer, std::span<const std::byte> bytes) {
  if (silenced() || lost_.contains(peer)) return;
  links_.heard(peer, clock_->now());
  Message message;
  try {
    message = decode(bytes, size_);
  } catch (const MalformedMessage& error) {
    return link_lost(peer, fmt::format("it sent what is no control message: {}", error.what()));
  }
  std::visit(Overloaded{
                 [&](const Beat& beat) {
                   if (const auto use = links_.uses().find(peer); use != links_.uses().end())
                     use->second.lag = std::chrono::milliseconds(beat.lag_ms);
                 },
                 [&](const Link&) { open_link(peer); },
                 [&](const Flooded& flooded) { on_flooded(peer, flooded); },
                 [&](const Seen&) { goodbye_awaits_.erase(peer); },
                 [&](Routed& routed) { route(std::move(routed), peer); },
             },
             message);
}

// A goodbye is confirmed to its sender once it is forwarded and compared; it may have come over other ranks before.
void Control::on_flooded(int peer, const Flooded& message) {
  if (floods_.is_new(message.origin, message.number)) {
    spread(message, peer);
    on_flood(message.origin, message.body);
  }
  const auto* const goodbye = std::get_if<Goodbye>(&message.body);
  if (goodbye == nullptr || goodbye->more || message.origin != peer) return;
  tell([this, peer](ControlListener&) { post(peer, encode(Seen{})); });
}

void Control::on_flood(int origin, const FloodBody& body) {
  const TimePoint now = clock_->now();
  std::visit(Overloaded{
                 [&](const Suspect& suspect) { on_suspect(origin, suspect); },
                 [&](const Alive& alive) { verdicts_.alive(now, origin, std::chrono::milliseconds(alive.away_ms)); },
                 [&](const Lost& lost) { lose(lost.rank, lost.cause); },
                 [&](const Proposal& proposal) { verdicts_.propose(now, origin, proposal); },
                 [&](const Broken& broken) { break_group(broken); },
                 [&](const Goodbye& goodbye) { retire(origin, goodbye.positions); },
                 [&](const Departed& departed) { part_from(departed.rank); },
                 [&](const Refused& r) {
                   tell([refusal = Refusal{origin, r.group, r.epoch, r.sequence, r.text}](ControlListener& l) {
                     l.on_refusal(refusal);
                   });
                 },
             },
             body);
}

void Control::on_routed(int origin, RoutedBody body) {
  std::visit(Overloaded{
                 [&](Probe& probe) {
                   tell([origin, probe = std::move(probe)](ControlListener& l) {
                     l.on_probe(origin, probe.id, probe.question);
                   });
                 },
                 [&](ProbeAnswer& answer) {
                   tell([origin, answer = std::move(answer)](ControlListener& l) {
                     l.on_probe_answer(origin, answer.id, answer.answer);
                   });
                 },
                 [&](const Join& join) { creations_.on_join(origin, join); },
                 [&](const Missing& missing) { creations_.on_missing(missing); },
                 [&](const Made& made) { creations_.on_made(origin, made); },
                 [&](const Taken& taken) { creations_.on_taken(origin, taken); },
                 [&](const GaveUp& given_up) { creations_.on_gave_up(origin, given_up); },
                 [&](const CalledOff& called_off) { creations_.on_called_off(called_off); },
             },
             body);
}

// One answer serves all accusers of the same time. A rank that was stopped for long says so: the silence was then its
// own and not the fault of the link to the first accuser.
void Control::on_suspect(int accuser, const Suspect& message) {
  const TimePoint now = clock_->now();
  // A rank that could not connect to a rank that has left learns it from those that had a link to it.
  if (!message.is_witness && accuser != rank_ && parted_.contains(message.accused) &&
      wanted_links(message.accused, size_, {}).contains(rank_)) {
    flood(Departed{message.accused});
  }
  verdicts_.suspect(now, accuser, message);
  if (message.accused != rank_ || now - answered_ < options_.verdicts.settle / 2) return;
  answered_ = now;
  const bool recently = away_ > Duration(0) && now - came_back_ < options_.silence;
  const auto away = std::chrono::duration_cast<std::chrono::milliseconds>(recently ? away_ : Duration(0));
  flood(Alive{static_cast<std::uint32_t>(std::min<std::int64_t>(away.count(), UINT32_MAX))});
}

// ---- links

void Control::link_lost(int peer, std::string_view reason) {
  quiet_.erase(peer);
  break_link(peer, true, reason);
}

// A rank does not leave before the links of its place in the network are open and carry its goodbye. So a rank that
// belongs at the other end of such a link and could not connect knows that the peer did not leave. Other ranks do not
// know.
void Control::link_refused(int peer, std::string_view reason) {
  if (left_.contains(peer)) return part_from(peer);
  quiet_.erase(peer);
  break_link(peer, wanted_links(peer, size_, {}).contains(rank_), reason);
}

void Control::break_link(int peer, bool is_witness, std::string_view reason) {
  if (silenced() || !links_.usable(peer)) return;
  links_.ban(peer);
  goodbye_awaits_.erase(peer);
  mend_links();
  if (!lost_.contains(peer)) flood(Suspect{peer, is_witness, std::string(reason)});
}

void Control::mend_links() {
  mend_at_ = TimePoint::max();
  if (silenced() || is_leaving_) return;
  for (const int peer : links_.missing()) {
    transport_->attach(peer);
    post(peer, encode(Link{}));
    open_link(peer);
  }
}

// A new link starts with the recent floods: the peer may have missed some while the network was partitioned.
void Control::open_link(int peer) {
  if (!links_.usable(peer) || !links_.add(peer, clock_->now())) return;
  for (const auto& flood : floods_.recent()) post(peer, flood);
}

// The lag of this rank: how much later than intended it polled its links, with old values fading out.
void Control::note_lag(TimePoint now) {
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
Duration Control::silence_limit(const Links::Use& use) const {
  constexpr int lags = 4;
  const bool can_ask = static_cast<bool>(options_.life);
  const Duration limit = use.spoke || can_ask ? options_.silence : options_.first_contact;
  return std::max(limit, lags * (lag_ + use.lag));
}

// Empty for a peer that is known to live. The system's answer, where there is one, counts more than silence.
std::string Control::why_silent(int peer, Links::Use& use, TimePoint now) {
  const Life life = options_.life ? options_.life(peer) : Life::unknown;
  const double seconds = std::chrono::duration<double>(now - use.heard).count();
  if (life == Life::stopped)
    return fmt::format("its process is stopped, and nothing was heard of it for {:.1f} s", seconds);
  if (life == Life::ended) return "its process has ended";
  const bool waits_for_first = life == Life::unknown && !use.spoke && now - use.heard < options_.first_contact;
  if (life == Life::running || waits_for_first || transport_->heard_from(peer)) {
    use.heard = waits_for_first ? use.heard : now;
    return {};
  }
  return fmt::format("nothing was heard of it for {:.1f} s", seconds);
}

void Control::beat_and_listen(TimePoint now) {
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
    break_link(peer, true, why);
  }
}

}  // namespace tutti::control
