// rank_program.cpp: one rank of a random program of messages.
// SPDX-License-Identifier: Apache-2.0
#include "rank_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include <tutti/error.hpp>

#include "base/hash.hpp"

namespace tutti::message_programs {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t unused_tag = 999;  // nobody sends with it
constexpr std::int32_t untouched = -77;

}  // namespace

RankProgram::RankProgram(const Program& program, Group& world)
    : program_(program),
      world_(world),
      apart_(world.split(0)),
      random_(Hash(program.seed).add(static_cast<std::uint64_t>(world.rank())).value()) {
  for (const auto& round : program.rounds) {
    for (const Sent& each : round) largest_ = std::max(largest_, each.count);
  }
}

void RankProgram::complain(const std::string& text) {
  complaints_.push_back(fmt::format("rank {}: {}", world_.rank(), text));
}

void RankProgram::run() {
  for (const auto& round : program_.rounds) {
    play_round(round);
    std::vector<int> ones{1};
    world_.all_reduce(ones);  // whatever failed in the round, the group is whole
    if (ones[0] != world_.size()) complain("a collective after the round was wrong");
  }
  if (world_.iprobe(any_source, {.tag = any_tag}).valid()) complain("a message is left over");
}

void RankProgram::play_round(const std::vector<Sent>& round) {
  std::vector<std::vector<std::int32_t>> data;
  std::vector<Work> sends;
  for (const Sent& each : round) {
    if (each.from != world_.rank()) continue;
    auto& elements = data.emplace_back(static_cast<std::size_t>(each.count));
    for (std::size_t i = 0; i < elements.size(); ++i)
      elements[i] = element_of(each.number, static_cast<std::int64_t>(i));
    sends.push_back(world_.isend(elements, each.to, {.tag = each.tag}));
    if (random_.chance(0.1)) disturb();
  }
  Awaited awaited(round, world_.rank());
  while (!awaited.empty()) {
    receive_one(awaited);
    if (random_.chance(0.1)) disturb();
  }
  for (Work& send : sends) send.wait();
}

RankProgram::Wish RankProgram::draw_wish(const Sent& message) {
  Wish wish;
  if (random_.chance(0.6)) wish.from = message.from;
  if (random_.chance(0.6)) wish.tag = message.tag;
  return wish;
}

void RankProgram::receive_one(Awaited& awaited) {
  const Sent like = awaited.any(random_);
  const Wish wish = draw_wish(like);
  const std::int64_t room = largest_ + static_cast<std::int64_t>(random_.below(3));
  switch (random_.below(6)) {
    case 0: return receive_into(awaited, wish, room);
    case 1: return receive_by_value(awaited, wish);
    case 2: return receive_later(awaited, wish, room);
    case 3: return receive_found(awaited, wish);
    case 4: return refuse_one(awaited, like);
    default: {
      {
        const Message let_go = world_.probe(wish.from, wish.options());
      }
      return receive_into(awaited, wish, room);
    }
  }
}

void RankProgram::receive_into(Awaited& awaited, const Wish& wish, std::int64_t room) {
  std::vector<std::int32_t> into(static_cast<std::size_t>(room), untouched);
  const Received received = world_.recv(into, wish.from, wish.options());
  const auto count = static_cast<std::size_t>(received.count);
  check(awaited, wish, received, std::span(into).first(count));
  if (std::ranges::any_of(std::span(into).subspan(count), [](std::int32_t each) { return each != untouched; }))
    complain("a receive wrote behind its message");
}

void RankProgram::receive_by_value(Awaited& awaited, const Wish& wish) {
  Message found = world_.probe(wish.from, wish.options());
  const Received received{.source = found.source(), .tag = found.tag(), .count = found.count()};
  check(awaited, wish, received, found.recv<std::vector<std::int32_t>>());
}

void RankProgram::receive_later(Awaited& awaited, const Wish& wish, std::int64_t room) {
  std::vector<std::int32_t> into(static_cast<std::size_t>(room), untouched);
  Work work = world_.irecv(into, wish.from, wish.options());
  if (random_.chance(0.3) && work.cancel()) {  // as if it had never been asked for
    if (into != std::vector(into.size(), untouched)) complain("a receive that was cancelled has written");
    return;
  }
  work.wait();
  const Received received = work.received();
  check(awaited, wish, received, std::span(into).first(static_cast<std::size_t>(received.count)));
}

void RankProgram::receive_found(Awaited& awaited, const Wish& wish) {
  Message found = world_.iprobe(wish.from, wish.options());
  if (!found.valid())
    found = world_.probe(wish.from, wish.options());  // in the simulator, nothing comes to one who never waits
  std::vector<std::int32_t> into(static_cast<std::size_t>(found.count()));
  const Received received = found.recv(into);
  check(awaited, wish, received, into);
}

// Too little room, or elements of another type: that message is gone, and no other.
void RankProgram::refuse_one(Awaited& awaited, const Sent& like) {
  const Sent message = *awaited.next(like.from, like.tag);
  const bool is_small = message.count > 0 && random_.chance(0.5);
  std::vector<std::int32_t> small(static_cast<std::size_t>(std::max<std::int64_t>(message.count - 1, 0)), untouched);
  std::vector<double> other(static_cast<std::size_t>(message.count), untouched);
  try {
    if (is_small) {
      world_.recv(small, message.from, {.tag = message.tag});
    } else {
      world_.recv(other, message.from, {.tag = message.tag});
    }
    complain(fmt::format("a message of {} elements was taken that does not fit", message.count));
  } catch (const Mismatch&) {
    if (small != std::vector(small.size(), untouched) || other != std::vector<double>(other.size(), untouched))
      complain("a receive that failed has written");
  }
  awaited.take(message);
}

// What has nothing to do with the program's messages, and must not disturb them.
void RankProgram::disturb() {
  const int peer = static_cast<int>(random_.below(static_cast<std::uint64_t>(world_.size())));
  std::vector<std::int32_t> into(3, untouched);
  switch (random_.below(5)) {
    case 0:
      if (!world_.irecv(into, peer, {.tag = unused_tag}).cancel()) complain("a receive could not be cancelled");
      break;
    case 1: {
      const Work dropped = world_.irecv(into, any_source, {.tag = unused_tag});
    } break;
    case 2:
      try {
        world_.recv(into, peer, {.tag = unused_tag, .timeout = 2ms});
        complain("a message came that nobody sent");
      } catch (const Timeout&) {}
      break;
    case 3: {
      const std::vector<std::int32_t> large(400'000, 5);
      Work sending = apart_.isend(large, peer);
      const bool at_once = sending.cancel();
      try {
        sending.wait();
        complain(fmt::format("a send that nobody received ended well{}", at_once ? ", after it was cancelled" : ""));
      } catch (const Aborted&) {}
      break;
    }
    default:
      if (world_.iprobe(any_source, {.tag = unused_tag}).valid()) complain("a message was found that nobody sent");
  }
}

void RankProgram::check(Awaited& awaited, const Wish& wish, const Received& received,
                        std::span<const std::int32_t> elements) {
  const std::string what =
      fmt::format("{} elements from rank {} with tag {}", received.count, received.source, received.tag);
  if ((wish.from != any_source && received.source != wish.from) || (wish.tag && received.tag != *wish.tag))
    return complain(what + " came, which was not asked for");
  const Sent* const next = awaited.next(received.source, wish.tag);
  if (next == nullptr) return complain(what + " came, which nobody sent");
  const Sent expected = *next;
  awaited.take(expected);
  if (received.tag != expected.tag || received.count != expected.count)
    return complain(fmt::format("{} came out of order: {} with tag {} was next", what, expected.count, expected.tag));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i] != element_of(expected.number, static_cast<std::int64_t>(i)))
      return complain(fmt::format("{}: element {} is wrong", what, i));
  }
}

}  // namespace tutti::message_programs
