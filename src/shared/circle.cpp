// circle.cpp: collectives of ranks that share a host, carried out in their common memory.
// SPDX-License-Identifier: Apache-2.0
#include "shared/circle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "shared/carrier_hot.hpp"
#include "shared/circle_body.hpp"
#include "shared/settled_limits.hpp"

namespace tutti::shared {
namespace {

// Some hundred nanoseconds: what a cache line takes to come over, with room. Pointless if whoever is awaited needs this core.
constexpr int looks_per_poll = 64;

/// Of a message in a door.
std::int64_t lines_after_first(std::int64_t bytes) {
  return (std::max(bytes - first_line_bytes, std::int64_t{0}) + line_bytes - 1) / line_bytes;
}

}  // namespace

Circle::Circle(const Parts& parts) : parts_(parts) {
  parts_.limits = settled(parts.limits, parts.size);
  std::byte* block = parts_.commons->allocate(Seat::bytes(parts_.limits, parts_.size));
  own_ = new (block) Seat();
}

Circle::~Circle() { parts_.commons->free(reinterpret_cast<std::byte*>(own_)); }

std::uint64_t Circle::seat_offset() const { return parts_.commons->offset_of(reinterpret_cast<std::byte*>(own_)); }

void Circle::connect(const std::vector<std::uint64_t>& offsets, bool crowded) {
  if (crowded) parts_.limits = shared::crowded(parts_.limits);
  std::vector<Flags<Native>*> flags;
  std::vector<const Native::LongWord*> taken;
  places_.clear();
  for (int rank = 0; rank < parts_.size; ++rank) {
    auto* seat = rank == parts_.rank
                     ? own_
                     : reinterpret_cast<Seat*>(parts_.commons->at(rank, offsets[static_cast<std::size_t>(rank)],
                                                                  Seat::bytes(parts_.limits, parts_.size)));
    Place place{.seat = seat};
    for (int i = 0; i < Seat::slot_count(parts_.size); ++i) place.slots[i] = seat->slot(i, parts_.limits);
    places_.push_back(place);
    flags.push_back(&seat->flags);
    taken.push_back(&seat->flags.taken.stamp);
  }
  for (int rank = 0; parts_.size == 2 && rank < 2; ++rank) {  // they may cross
    const Place& other = places_[static_cast<std::size_t>(1 - rank)];
    std::copy_n(other.slots + Native::slots, Native::slots,
                places_[static_cast<std::size_t>(rank)].slots + 2 * Native::slots);
  }
  parts_.commons->connected(std::move(taken));
  steps_ = Steps<Native>(parts_.rank, std::move(flags));
}

// It is told where it is looked up: the others' seats may be gone by then, and one's own is not.
void Circle::depart() {
  parts_.commons->departing();
  for (int rank = 0; rank < static_cast<int>(places_.size()); ++rank) {
    if (rank != parts_.rank)
      places_[static_cast<std::size_t>(rank)].seat->departed.fetch_add(1, std::memory_order_acq_rel);
  }
}

// The same numbers on every member: they come from the call, and from the order of bodies within it.
inline void Circle::identify(SharedBody& body) {
  const std::uint64_t sequence = body.start.signature.sequence;
  const bool is_first = sequence != sequence_;  // of its call
  const std::uint64_t step = is_first ? 1 : next_step_;
  const std::uint64_t before = is_first ? 0 : bodies_of_call_;
  if (step + body.movement.span + 1 >= (std::uint64_t{1} << step_bits)) [[unlikely]]
    refuse_pieces(body);
  body.identity.first = (sequence << step_bits) + step;
  body.identity.turn = sequence + before;
  body.identity.signature.sequence = sequence;
  body.identity.signature.history = body.start.signature.history;
  body.run.crosses = body.movement.crosses && is_first;
  const unsigned parts = body.meets ? 2 : 1;
  sequence_ = sequence;
  next_step_ = step + body.movement.span + parts - 1;
  bodies_of_call_ = before + parts;
}

void Circle::refuse_pieces(const SharedBody& body) {
  throw Error(fmt::format("{}: {} pieces are more than one call may have; use larger slots in shared memory",
                          describe(body.start.signature), body.movement.rounds));
}

Body& Circle::start(const BodyStart& start) {
  if (idle_.empty()) {
    bodies_.push_back(std::make_unique<SharedBody>(*this));
    idle_.push_back(bodies_.back().get());
  }
  SharedBody& body = *idle_.back();
  std::replace(noted_.begin(), noted_.end(), static_cast<const SharedBody*>(&body),
               static_cast<const SharedBody*>(nullptr));
  const auto element = static_cast<std::int64_t>(size_of(start.dtype));
  body.start = start;
  body.movement = movement_of(*start.spec, element, parts_.limits);
  if (static_cast<std::uint64_t>(body.movement.rounds) > body.movement.span) refuse_pieces(body);
  body.meets = is_worth_meeting(*start.spec, element, reach());
  body.identity.phase = start.phase;
  body.identity.signature = start.signature;
  body.identity.digest = digest_of(start.signature, start.phase);
  body.slot_work.prepare(body.start, body.movement, places_, parts_.limits);
  const Movement& m = body.movement;
  body.run = {.span = m.span,
              .rounds = m.rounds,
              .leaves = m.leaves,
              .in_slots = !m.in_door,
              .hears_all = m.answers || body.slot_work.take_sources() == parts_.size - 1,
              .answers = m.answers};
  body.is_single = m.rounds == 1 && !m.answers;
  body.expects_next = !m.answers && (!m.in_door || parts_.size > 2);
  const bool touches = body.movement.in_door && parts_.size == 2;
  body.touched_lines = touches ? lines_after_first(body.slot_work.first_message_bytes()) : 0;
  body.looks_per_touch = body.touched_lines > 2 ? static_cast<int>(body.touched_lines) : 1;
  enqueue(body);
  idle_.pop_back();
  return body;
}

// A message of one round that nothing is before takes a straight way: if it is short, it is on it for less time than a cache line.
bool Circle::run_again(Body& ended, const Signature& numbered, const std::byte* input, std::byte* output) {
  auto& body = static_cast<SharedBody&>(ended);
  body.start.signature.sequence = numbered.sequence;
  body.start.signature.history = numbered.history;
  body.start.input = input;
  body.start.output = output;
  enqueue(body);
  bool published = false;
  if (body.is_single && !body.meets && oldest_ == &body) {
    begin_slots(body);
    if (look(body, [&] { return advance_single(body); })) end_oldest();
    published = steps_.take_published();
  } else {
    published = progress();
  }
  const bool done = body.stage == SharedBody::Stage::done;
  if (published && !done) parts_.commons->ring_all();
  return done;
}

inline void Circle::enqueue(SharedBody& body) {
  body.part = body.meets ? SharedBody::Part::meeting : SharedBody::Part::slots;
  identify(body);
  body.stage = SharedBody::Stage::waiting;
  if (oldest_ == nullptr) {
    oldest_ = &body;
  } else {
    later_.push_back(&body);
  }
}

inline void Circle::dequeue_oldest() {
  begun_ = false;
  oldest_ = later_.empty() ? nullptr : later_.front();
  if (oldest_ != nullptr) later_.erase(later_.begin());
}

void Circle::release(Body& body) { idle_.push_back(static_cast<SharedBody*>(&body)); }

// Where the same body was written down some turns ago, there is nothing new but its number.
inline void Circle::note(SharedBody& body) {
  const SharedBody*& noted = noted_[body.identity.turn % noted_.size()];
  if (noted == &body) return own_->log.renumber(body.identity.turn, body.identity.first);
  own_->log.write(body.identity);
  noted = &body;
}

inline void Circle::begin(SharedBody& body) {
  if (body.part == SharedBody::Part::slots) return begin_slots(body);
  begun_ = true;
  note(body);
  body.whereabouts.resize(places_.size());
  body.door_work.met = body.part == SharedBody::Part::direct;
  const bool meeting = body.part == SharedBody::Part::meeting;
  steps_.begin(body.number(), {.span = meeting ? 1 : body.movement.span,
                               .rounds = 1,
                               .leaves = meeting,
                               .in_slots = false,
                               .hears_all = meeting,
                               .after_meeting = !meeting});
}

inline void Circle::begin_slots(SharedBody& body) {
  begun_ = true;
  note(body);
  steps_.begin(body.number(), body.run);
  body.slot_work.begin(body.start.input, body.start.output, steps_.door());
}

// The meeting is over: everyone knows the same, and concludes the same.
void Circle::go_on(SharedBody& body) {
  const auto element = static_cast<std::int64_t>(size_of(body.start.dtype));
  const DirectWay way = direct_way(*body.start.spec, element, body.whereabouts, reach());
  body.direct.begin(body.start, way, body.whereabouts, *parts_.commons, parts_.limits.stream_bytes_min);
  body.part = way == DirectWay::none ? SharedBody::Part::slots : SharedBody::Part::direct;
  ++body.identity.first;
  ++body.identity.turn;
  begin(body);
}

inline bool Circle::advance_single(SharedBody& body) {
  return body.movement.in_door ? steps_.advance_single<false>(body.short_work)
                               : steps_.advance_single<true>(body.slot_work);
}

inline bool Circle::advance(SharedBody& body) {
  switch (body.part) {
    case SharedBody::Part::slots: return body.is_single ? advance_single(body) : steps_.advance(body.slot_work);
    case SharedBody::Part::direct: return steps_.advance(body.door_work) && steps_.is_over();
    case SharedBody::Part::meeting: break;
  }
  if (!steps_.advance(body.door_work)) return false;
  go_on(body);
  return advance(body);
}

// Until the body is done, or for as long as it is worth to look.
template <class Advance>
inline bool Circle::look(SharedBody& body, Advance advance_body) {
  const int looks_max = parts_.oversubscribed ? 1 : looks_per_poll;
  try {
    for (int looks = 0, touch_at = 0; looks < looks_max; ++looks) {
      if (advance_body()) return true;
      if (steps_.moved()) looks = touch_at = 0;
      if (body.touched_lines == 0 || looks < touch_at) continue;
      touch_awaited(body);
      touch_at += body.looks_per_touch;
    }
  } catch (...) {
    parts_.commons->ring_all();  // what was said before the failure is still to be heard
    throw;
  }
  return false;
}

// Whether something was published for which nobody has rung yet.
bool Circle::progress() {
  while (oldest_ != nullptr) {
    if (!begun_) begin(*oldest_);
    if (!look(*oldest_, [this] { return advance(*oldest_); })) break;
    end_oldest();
  }
  return steps_.take_published();
}

inline void Circle::end_oldest() {
  SharedBody& body = *oldest_;
  body.stage = SharedBody::Stage::done;
  dequeue_oldest();
  if (body.expects_next) expect_next(body);
}

// A call like this one, most likely: the lines of the slot that it will write first have been read by others since they were
// written last, and take as long to come back as a message to go. Roots may take turns, so whether this rank left anything in
// this call does not matter. Of a door only the second line, if several wait for it: they look at the first already, and would take
// it away again.
inline void Circle::expect_next(const SharedBody& body) {
  constexpr std::int64_t lines_max = 8;
  if (body.movement.in_door) {
    Native::Greeting& next = own_->flags.doors[(body.identity.turn + 1) % Native::doors].greeting;
    const bool has_second = body.slot_work.first_message_bytes() > first_line_bytes;
    if (has_second) shm::expect_write(next.payload + first_line_bytes);
    return;
  }
  std::byte* const slot = places_[static_cast<std::size_t>(parts_.rank)]
                              .slots[Steps<Native>::place_of(body.identity.turn + 1, 0, body.run.crosses)];
  const std::int64_t bytes = std::min(body.slot_work.first_message_bytes(), lines_max * line_bytes);
  for (std::int64_t at = 0; at < bytes; at += line_bytes) shm::expect_write(slot + at);
}

// Of two ranks, the one that waits has all lines of the other's door in its cache, as they were when it read them last. To look at
// them disturbs nobody until they are written; and then they come together, not one after the other. While the other writes many
// of them, a look may take one away that is not full yet: so they are looked at less often.
inline void Circle::touch_awaited(const SharedBody& body) const {
  const Seat& other = *places_[static_cast<std::size_t>(1 - parts_.rank)].seat;
  const auto* const door = reinterpret_cast<const std::byte*>(&other.flags.doors[steps_.door()]);
  for (std::int64_t line = 1; line <= body.touched_lines; ++line) __builtin_prefetch(door + line * line_bytes);
}

// What this rank's door says beside the stamp.
inline void Circle::greet(const SharedBody& body) {
  Native::Greeting& greeting = greeting_of(parts_.rank);
  greeting.digest = body.identity.digest;
  greeting.history = body.identity.signature.history;
}

inline Native::Greeting& Circle::greeting_of(int rank) const { return steps_.door_of(rank).greeting; }

// First contact with a peer in a body: it is in the same round 0, so its door is ours to read.
inline void Circle::meet(const SharedBody& body, int peer) {
  const Native::Greeting& theirs = greeting_of(peer);
  if (theirs.digest != body.identity.digest) compare(peer, body.identity);
  if (theirs.history != body.identity.signature.history) [[unlikely]]
    compare_histories(peer, body.identity, theirs.history);
}

/// Throws if the peer's signature of that body is another. A body that it left out is no reason.
void Circle::compare(int peer, const Identity& mine) const {
  const auto found = places_[static_cast<std::size_t>(peer)].seat->log.read(mine);
  if (!found || (found->signature.is_same_call(mine.signature) && found->phase == mine.phase)) return;
  throw SignatureDiffers(fmt::format("rank {} asked for {}, rank {} for {}", parts_.rank, describe(mine.signature),
                                     peer, describe(found->signature)),
                         peer, found->signature);
}

// The first of the bodies that both still have in their logs is named; an older one is the group's to find.
void Circle::compare_histories(int peer, const Identity& mine, std::uint32_t theirs) const {
  if (histories_agree(mine.signature.history, theirs)) return;
  constexpr std::uint64_t kept = SignatureLog::entry_count;
  for (std::uint64_t turn = mine.turn - std::min(mine.turn, kept - 1); turn < mine.turn; ++turn) {
    const Stamp stamp = own_->log.stamp_at(turn);
    Identity before{.first = stamp, .turn = turn};
    before.signature.sequence = stamp >> step_bits;
    const auto own = own_->log.read(before);
    if (stamp == 0 || !own) continue;
    before.phase = own->phase;
    before.signature = own->signature;
    compare(peer, before);
  }
  Signature differing = mine.signature;
  differing.history = theirs;
  throw SignatureDiffers(
      fmt::format("ranks {} and {} made different calls before {}", parts_.rank, peer, describe(mine.signature)), peer,
      differing);
}

void Circle::leave_out(SharedBody& body) {
  if (body.is_oldest()) {
    if (begun_) {
      steps_.abandon();
      parts_.commons->ring_all();
    }
    dequeue_oldest();
  } else {
    later_.erase(std::find(later_.begin(), later_.end(), &body));
  }
}

}  // namespace tutti::shared
