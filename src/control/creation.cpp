// creation.cpp: members join, the lowest one makes the group.
// SPDX-License-Identifier: Apache-2.0
#include "control/creation.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/hash.hpp"

namespace tutti::control {

namespace {

constexpr std::size_t retired_max = 4096;
constexpr std::size_t named_ranks_max = 16;

std::uint64_t hash_of(const CreationRequest& request) {
  Hash hash(request.key);
  for (const int member : request.members) hash.add(static_cast<std::uint64_t>(member));
  return hash.value();
}

// "2, 5, 7" or "0, 1, …, and 84 more".
std::string list_of(const std::vector<int>& ranks, std::size_t count) {
  const std::size_t shown = std::min(ranks.size(), named_ranks_max);
  std::string text =
      fmt::format("{}", fmt::join(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  return shown < count ? fmt::format("{}, … and {} more", text, count - shown) : text;
}

Cause gave_up_earlier(int rank) {
  return {.kind = Cause::Kind::timeout,
          .culprits = {rank},
          .sequence = 0,
          .text = fmt::format("rank {} no longer waited for the group to be made", rank)};
}

}  // namespace

std::shared_ptr<const Creation> Creations::start(TimePoint now, CreationRequest request) {
  auto creation = std::make_shared<Creation>();
  const std::uint64_t list = hash_of(request);
  const CreationName name{list, ++started_[list]};
  const int lowest = *std::min_element(request.members.begin(), request.members.end());
  own_.emplace(name, Own{.request = std::move(request), .creation = creation, .lowest = lowest, .wait = retry_});
  for (const int member : own_[name].request.members) {
    if (const Cause* const cause = outside_.gone(member); cause != nullptr) {
      fail_without(name, member, *cause);
      return creation;
    }
  }
  join(name, own_[name], now);
  return creation;
}

// Repeated less and less often; the first time soon enough to learn which ranks are missing before a near deadline.
void Creations::join(const CreationName& name, Own& own, TimePoint now) {
  const bool first = own.wait == retry_;
  own.next_join = now + (first ? std::min(own.wait, (own.request.deadline - now) / 2) : own.wait);
  own.wait = std::min(2 * own.wait, 5 * retry_);
  const std::vector<int>& members = own.request.members;
  Join message{.name = name, .member_count = static_cast<std::uint32_t>(members.size()), .members = members};
  message.members.resize(std::min(members.size(), listed_ranks_max));
  if (own.lowest != rank_) return outside_.send(own.lowest, std::move(message));
  on_join(rank_, message);
}

void Creations::on_join(int from, const Join& message) {
  Led& led = led_[message.name];
  if (led.failed) return call_off(from, message.name, *led.failed);
  if (led.group != 0) return outside_.send(from, Made{message.name, led.group, led.blob});  // the first one was lost
  if (leaving_ && !own_.contains(message.name)) {
    led.joined.insert(from);
    return fail_led(message.name, led, *leaving_);
  }
  led.member_count = message.member_count;
  led.members = message.members;
  const bool repeated = !led.joined.insert(from).second;
  if (led.joined.size() == led.member_count && own_.contains(message.name)) return make(message.name, led);
  if (repeated && from != rank_) outside_.send(from, Missing{message.name, missing(message.name, led)});
}

void Creations::make(const CreationName& name, Led& led) {
  const Own& own = own_.at(name);
  do {
    led.group = random_.next();
  } while (led.group == 0);
  led.blob = own.request.blob;
  const std::vector<int> members = own.request.members;  // a copy: our own part ends `own`
  const Made made{name, led.group, led.blob};
  untaken_.emplace(name, TimePoint::max());
  for (const int member : members) {
    if (member != rank_) outside_.send(member, made);
  }
  on_made(rank_, made);
}

void Creations::on_missing(const Missing& message) {
  if (const auto own = own_.find(message.name); own != own_.end()) own->second.missing = message.cause;
}

void Creations::on_made(int from, const Made& made) {
  const auto own = own_.find(made.name);
  if (own == own_.end()) {  // told again: the lowest member has not heard how this ended here
    if (from == rank_) return;
    if (!given_up_.contains(made.name)) return outside_.send(from, Taken{made.name});
    return outside_.send(from, GaveUp{made.name, gave_up_earlier(rank_)});
  }
  Creation& creation = *own->second.creation;
  creation.group = made.group;
  creation.blob = made.blob;
  creation.state = Creation::State::ready;
  own_.erase(own);
  if (from == rank_) return on_taken(rank_, Taken{made.name});
  outside_.send(from, Taken{made.name});
}

void Creations::on_taken(int from, const Taken& taken) { take(from, taken.name); }

// Once all have the group, or never will, nobody waits for them.
void Creations::take(int member, const CreationName& name) {
  const auto found = led_.find(name);
  if (found == led_.end() || found->second.group == 0) return;
  Led& led = found->second;
  const bool is_listed = std::ranges::find(led.members, member) != led.members.end();
  if ((!is_listed && led.members.size() == led.member_count) || !led.taken.insert(member).second) return;
  if (led.taken.size() < led.member_count) return;
  led.blob.clear();
  untaken_.erase(name);
  retire(name);
}

// Made, or the answer to it, may have been lost with a rank on its way.
void Creations::repeat_made(TimePoint now) {
  for (auto& [name, at] : untaken_) {
    const Led& led = led_.at(name);
    if (now >= at) {
      for (const int member : led.members) {
        if (!led.taken.contains(member)) outside_.send(member, Made{name, led.group, led.blob});
      }
    }
    if (now >= at || at == TimePoint::max()) at = now + 5 * retry_;
  }
}

void Creations::on_gave_up(int from, const GaveUp& message) {
  Led& led = led_[message.name];
  if (led.failed) return;
  if (led.group == 0) return fail_led(message.name, led, message.cause);
  if (!led.taken.contains(from)) outside_.abort_group(led.group, message.cause);
  take(from, message.name);
}

void Creations::on_called_off(const CalledOff& message) {
  const auto own = own_.find(message.name);
  if (own == own_.end()) return;
  end_own(message.name, message.cause);
}

void Creations::call_off(int member, const CreationName& name, const Cause& cause) {
  if (member == rank_) return on_called_off({name, cause});
  outside_.send(member, CalledOff{name, cause});
}

// All ranks that have joined are told now; a rank that joins later is told then.
void Creations::fail_led(const CreationName& name, Led& led, const Cause& cause) {
  led.failed = cause;
  const std::set<int> joined = std::exchange(led.joined, {});
  led.members.clear();
  retire(name);
  for (const int member : joined) call_off(member, name, cause);
}

void Creations::end_own(const CreationName& name, const Cause& cause) {
  const auto own = own_.extract(name);
  if (own.empty()) return;
  own.mapped().creation->cause = cause;
  own.mapped().creation->state = Creation::State::failed;
}

// This rank gives up, and the other members must not wait for it.
void Creations::give_up(const CreationName& name, const Cause& cause) {
  constexpr std::size_t given_up_max = 1024;
  const int lowest = own_.at(name).lowest;
  end_own(name, cause);
  given_up_.insert(name);
  if (given_up_.size() > given_up_max) given_up_.erase(given_up_.begin());
  if (lowest == rank_) return on_gave_up(rank_, {name, cause});
  outside_.send(lowest, GaveUp{name, cause});
}

void Creations::give_up(const Creation& creation, const Cause& cause) {
  const auto own =
      std::ranges::find_if(own_, [&](const auto& each) { return each.second.creation.get() == &creation; });
  if (own != own_.end()) give_up(CreationName(own->first), cause);
}

void Creations::fail_without(const CreationName& name, int rank, const Cause& cause) {
  const std::size_t count = own_.at(name).request.members.size();
  give_up(name,
          {.kind = Cause::Kind::lost,
           .culprits = {rank},
           .sequence = 0,
           .text = fmt::format("a group of {} members cannot be made without rank {}: {}", count, rank, cause.text)});
}

void Creations::remove_rank(int rank, const Cause& cause) {
  const bool was_lost = cause.kind == Cause::Kind::lost && !has_left_.contains(rank);
  std::vector<CreationName> affected;
  for (const auto& [name, own] : own_) {
    const bool is_member = std::ranges::find(own.request.members, rank) != own.request.members.end();
    if (is_member && (was_lost || own.lowest == rank)) affected.push_back(name);
  }
  for (const CreationName& name : affected) {
    if (own_.contains(name)) fail_without(name, rank, cause);
  }
  affected.clear();
  for (const auto& [name, at] : untaken_) affected.push_back(name);
  for (const CreationName& name : affected) take(rank, name);  // nobody to wait for
}

// Only the leader knows whether it had joined.
void Creations::member_left(int rank, const Cause& cause) {
  has_left_.insert(rank);
  std::vector<CreationName> affected;
  for (auto& [name, led] : led_) {
    const auto own = own_.find(name);
    const auto& members = own != own_.end() ? own->second.request.members : led.members;
    if (std::ranges::find(members, rank) == members.end() || led.failed) continue;
    if (led.group == 0 && !led.joined.contains(rank)) affected.push_back(name);
  }
  for (const CreationName& name : affected) {
    if (own_.contains(name)) {
      fail_without(name, rank, cause);
    } else {
      fail_led(name, led_[name], cause);
    }
  }
}

void Creations::leave(const Cause& cause) {
  leaving_ = cause;
  std::vector<CreationName> open;
  for (const auto& [name, own] : own_) open.push_back(name);
  for (const CreationName& name : open) {
    if (own_.contains(name)) give_up(name, cause);
  }
}

Cause Creations::missing(const CreationName& name, const Led& led) const {
  const auto own = own_.find(name);
  Cause cause{.kind = Cause::Kind::timeout, .culprits = {}, .sequence = 0, .text = {}};
  for (const int member : own != own_.end() ? own->second.request.members : led.members) {
    if (!led.joined.contains(member)) cause.culprits.push_back(member);
  }
  std::ranges::sort(cause.culprits);
  std::string elsewhere;
  for (const auto& entry : led_) {
    const Led& other = entry.second;
    if (entry.first == name || other.group != 0 || other.failed) continue;
    const auto stray = std::ranges::find_if(cause.culprits, [&](int rank) { return other.joined.contains(rank); });
    if (stray == cause.culprits.end()) continue;
    cause.kind = Cause::Kind::mismatch;
    elsewhere = fmt::format("; rank {} is making another group, of {} members: {}", *stray, other.member_count,
                            list_of(other.members, other.member_count));
    break;
  }
  cause.text = fmt::format(
      "the group of {} members ({}) could not be made: {} {} not joined{}; every member must call with the same list, "
      "in the "
      "same order",
      led.member_count, list_of(led.members, led.member_count),
      (cause.culprits.size() == 1 ? "rank " : "ranks ") + list_of(cause.culprits, cause.culprits.size()),
      cause.culprits.size() == 1 ? "has" : "have", elsewhere);
  return cause;
}

Cause Creations::too_late(const CreationName& name, const Own& own) const {
  if (own.lowest == rank_) return missing(name, led_.at(name));
  if (!own.missing.text.empty()) return own.missing;
  return {.kind = Cause::Kind::timeout,
          .culprits = {own.lowest},
          .sequence = 0,
          .text = fmt::format(
              "the group of {} members ({}) could not be made: rank {}, the lowest of them, has not answered",
              own.request.members.size(), list_of(own.request.members, own.request.members.size()), own.lowest)};
}

bool Creations::poll(TimePoint now) {
  std::vector<CreationName> due;
  for (const auto& [name, own] : own_) {
    if (now >= std::min(own.request.deadline, own.next_join)) due.push_back(name);
  }
  for (const CreationName& name : due) {
    const auto own = own_.find(name);
    if (own == own_.end()) continue;
    if (now >= own->second.request.deadline) {
      give_up(name, too_late(name, own->second));
    } else {
      join(name, own->second, now);
    }
  }
  repeat_made(now);
  return !due.empty();
}

TimePoint Creations::next_timer() const {
  TimePoint next = TimePoint::max();
  for (const auto& [name, own] : own_) next = std::min({next, own.request.deadline, own.next_join});
  for (const auto& [name, at] : untaken_) next = std::min(next, at);
  return next;
}

void Creations::retire(const CreationName& name) {
  retired_.push_back(name);
  if (retired_.size() <= retired_max) return;
  led_.erase(retired_.front());
  retired_.pop_front();
}

}  // namespace tutti::control
