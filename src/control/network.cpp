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
  const bool unanswered = asks && !unanswered_.insert(to).second;
  const bool straight = unanswered || straight_.contains(to);
  route({rank_, to, straight ? 0 : links_.hops_max(), std::move(body)}, rank_);
}

// Where no link comes closer, a direct message is tried; the transport opens connections as they are needed.
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
  if (why_gone(message.to) != nullptr) return;
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
                 [](const Beat&) {},
                 [&](const Link&) { open_link(peer); },
                 [&](const Flooded& flooded) {
                   if (!floods_.is_new(flooded.origin, flooded.number)) return;
                   spread(flooded, peer);
                   on_flood(flooded.origin, flooded.body);
                 },
                 [&](Routed& routed) { route(std::move(routed), peer); },
             },
             message);
}

void Control::on_flood(int origin, const FloodBody& body) {
  const TimePoint now = clock_->now();
  std::visit(Overloaded{
                 [&](const Suspect& suspect) { on_suspect(origin, suspect); },
                 [&](const Alive& alive) { verdicts_.alive(now, origin, std::chrono::milliseconds(alive.away_ms)); },
                 [&](const Lost& lost) { lose(lost.rank, lost.cause); },
                 [&](const Proposal& proposal) { verdicts_.propose(now, origin, proposal); },
                 [&](const Broken& broken) { break_group(broken); },
                 [&](const Goodbye&) { part_from(origin); },
                 [&](const Closed& closed) {
                   tell([origin, closed](ControlListener& l) { l.on_closed(origin, closed.group, closed.epoch); });
                 },
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

// One answer serves all accusers of the same moment. Who was stopped for long says so: then silence was its own fault, and
// not that of the link to whoever noticed first.
void Control::on_suspect(int accuser, const Suspect& message) {
  const TimePoint now = clock_->now();
  verdicts_.suspect(now, accuser, message.accused, message.reason);
  if (message.accused != rank_ || now - answered_ < options_.verdicts.settle / 2) return;
  answered_ = now;
  const bool recently = away_ > Duration(0) && now - came_back_ < options_.silence;
  const auto away = std::chrono::duration_cast<std::chrono::milliseconds>(recently ? away_ : Duration(0));
  flood(Alive{static_cast<std::uint32_t>(std::min<std::int64_t>(away.count(), UINT32_MAX))});
}

// ---- links

void Control::link_lost(int peer, std::string_view reason) {
  quiet_.erase(peer);
  break_link(peer, reason);
}

void Control::break_link(int peer, std::string_view reason) {
  if (silenced() || !links_.usable(peer)) return;
  links_.ban(peer);
  mend_links();
  if (why_gone(peer) == nullptr) flood(Suspect{peer, std::string(reason)});
}

void Control::mend_links() {
  if (silenced()) return;
  for (const int peer : links_.missing()) {
    transport_->attach(peer);
    post(peer, encode(Link{}));
    open_link(peer);
  }
}

// A new link starts with the recent floods: its other end may have missed some while the network was in pieces.
void Control::open_link(int peer) {
  if (!links_.usable(peer) || !links_.add(peer, clock_->now())) return;
  for (const auto& flood : floods_.recent()) post(peer, flood);
}

void Control::beat_and_listen(TimePoint now) {
  const Duration gap = now - last_poll_;
  const bool was_stopped = gap > options_.beat + options_.silence / 2;
  if (was_stopped) {
    away_ = gap;
    came_back_ = now;
  }
  std::vector<int> silent;
  for (auto& [peer, use] : links_.uses()) {
    if (was_stopped) use.heard = std::max(use.heard, now - options_.silence / 2);  // their beats may lie unread
    const Duration limit = use.spoke ? options_.silence : options_.first_contact;
    if (now - use.heard >= limit) silent.push_back(peer);
    if (now - use.sent >= options_.beat) post(peer, encode(Beat{}));
  }
  for (const int peer : silent) {
    const auto use = links_.uses().find(peer);
    if (use == links_.uses().end()) continue;  // gone together with one before it
    const double seconds = std::chrono::duration<double>(now - use->second.heard).count();
    quiet_.insert(peer);
    break_link(peer, fmt::format("nothing was heard of it for {:.1f} s", seconds));
  }
}

}  // namespace tutti::control
