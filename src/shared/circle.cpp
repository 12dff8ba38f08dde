// circle.cpp: collectives of ranks that share a host, carried out in their common memory.
// SPDX-License-Identifier: Apache-2.0
#include "shared/circle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace tutti::shared {
namespace {

constexpr int looks_per_poll = 64;  // some hundred nanoseconds: what a cache line takes to come over, with room

SharedLimits rounded(SharedLimits limits, int size) {
  // Every member has at least one line of each slot.
  limits.slot_bytes = std::max<std::int64_t>(limits.slot_bytes, std::int64_t{64} * size);
  limits.slot_bytes = (limits.slot_bytes + 127) / 128 * 128;
  limits.chunk_bytes = std::clamp<std::int64_t>(limits.chunk_bytes, 64, limits.slot_bytes);
  return limits;
}

}  // namespace

class Circle::SharedBody final : public Body {
 public:
  enum class Stage : std::uint8_t { waiting, done, gone };

  explicit SharedBody(Circle& home) : circle(home) {}

  bool poll() override {
    if (stage == Stage::waiting) circle.progress();
    return stage == Stage::done;
  }
  void cancel() override {
    if (stage == Stage::waiting) circle.leave_out(*this);
    stage = Stage::gone;
  }
  [[nodiscard]] std::string_view how() const override { return name_of(movement); }
  [[nodiscard]] int steps_done() const override {
    if (stage == Stage::done) return step_count();
    return is_oldest() ? static_cast<int>(circle.steps_.rounds_taken()) : 0;
  }
  [[nodiscard]] int step_count() const override { return static_cast<int>(movement.rounds); }
  void add_waiting_for(std::vector<int>& ranks) const override {
    if (stage != Stage::waiting || circle.queue_.empty()) return;
    // Whoever keeps the oldest keeps all of them.
    circle.steps_.visit_awaited(circle.queue_.front()->work, [&](int peer) {
      if (std::find(ranks.begin(), ranks.end(), peer) == ranks.end()) ranks.push_back(peer);
    });
  }
  [[nodiscard]] bool is_oldest() const { return !circle.queue_.empty() && circle.queue_.front() == this; }

  // The carrier, and the look at a peer's signature on first contact.
  struct Work : Carrier {
    explicit Work(SharedBody& owner) : body(owner) {}
    void meet(int peer, int) { body.circle.meet(body, peer); }
    SharedBody& body;
  };

  Circle& circle;
  Stage stage = Stage::gone;
  BodyStart start;
  Movement movement;
  Identity identity;
  Work work{*this};
};

Circle::Circle(const Parts& parts) : parts_(parts) {
  parts_.limits = rounded(parts.limits, parts.size);
  std::byte* block = parts_.commons->allocate(Seat::bytes(parts_.limits));
  own_ = new (block) Seat();
}

Circle::~Circle() { parts_.commons->free(reinterpret_cast<std::byte*>(own_)); }

std::uint64_t Circle::seat_offset() const { return parts_.commons->offset_of(reinterpret_cast<std::byte*>(own_)); }

void Circle::connect(const std::vector<std::uint64_t>& offsets) {
  std::vector<Flags<Native>*> flags;
  places_.clear();
  for (int rank = 0; rank < parts_.size; ++rank) {
    auto* seat = rank == parts_.rank ? own_
                                     : reinterpret_cast<Seat*>(parts_.commons->at(
                                           rank, offsets[static_cast<std::size_t>(rank)], Seat::bytes(parts_.limits)));
    places_.push_back({.seat = seat, .slots = {seat->slot(0, parts_.limits), seat->slot(1, parts_.limits)}});
    flags.push_back(&seat->flags);
  }
  steps_ = Steps<Native>(parts_.rank, std::move(flags));
}

// The same numbers on every member: they come from the call, and from the order of bodies within it.
void Circle::identify(const BodyStart& start, const Movement& movement, Identity& identity) {
  if (start.signature.sequence != sequence_) {
    sequence_ = start.signature.sequence;
    next_step_ = 1;
    bodies_of_call_ = 0;
  }
  if (next_step_ + movement.span >= (std::uint64_t{1} << step_bits) ||
      static_cast<std::uint64_t>(movement.rounds) > movement.span) {
    throw Error(fmt::format("{}: {} pieces are more than one call may have; use larger slots in shared memory",
                            describe(start.signature), movement.rounds));
  }
  identity.first = (sequence_ << step_bits) + next_step_;
  identity.turn = sequence_ + bodies_of_call_;
  identity.phase = start.phase;
  identity.signature = start.signature;
  identity.digest = digest_of(start.signature, start.phase);
  next_step_ += movement.span;
  ++bodies_of_call_;
}

Body& Circle::start(const BodyStart& start) {
  if (idle_.empty()) {
    bodies_.push_back(std::make_unique<SharedBody>(*this));
    idle_.push_back(bodies_.back().get());
  }
  SharedBody& body = *idle_.back();
  body.start = start;
  body.movement = movement_of(*start.spec, static_cast<std::int64_t>(size_of(start.dtype)), parts_.limits);
  identify(start, body.movement, body.identity);
  body.stage = SharedBody::Stage::waiting;
  idle_.pop_back();
  queue_.push_back(&body);
  return body;
}

void Circle::release(Body& body) { idle_.push_back(static_cast<SharedBody*>(&body)); }

void Circle::begin_oldest() {
  SharedBody& body = *queue_.front();
  const Movement& m = body.movement;
  steps_.begin({.first = body.identity.first,
                .span = m.span,
                .turn = body.identity.turn,
                .rounds = m.rounds,
                .leaves = m.leaves,
                .in_slots = !m.in_door,
                .hears_all = m.two_shot || m.sources == Sources::all,
                .two_shot = m.two_shot});
  body.work.begin(body.start, m, places_, {.digest = body.identity.digest, .previous = previous_.digest},
                  steps_.door());
  own_->log.write(body.identity);
  begun_ = true;
}

void Circle::progress() {
  bool published = false;
  int looks = 0;
  while (!queue_.empty()) {
    SharedBody& body = *queue_.front();
    if (!begun_) begin_oldest();
    const bool done = steps_.advance(body.work);
    published |= steps_.published();
    if (done) {
      body.stage = SharedBody::Stage::done;
      previous_ = body.identity;
      queue_.pop_front();
      begun_ = false;
      looks = 0;
    } else if (steps_.moved()) {
      looks = 0;
    } else if (++looks == looks_per_poll) {
      break;
    }
  }
  if (published) parts_.commons->ring_all();
}

// First contact with a peer in a body: it is in the same round 0, so its door is ours to read.
void Circle::meet(const SharedBody& body, int peer) {
  const Native::Greeting& theirs = places_[static_cast<std::size_t>(peer)].seat->flags.doors[steps_.door()].greeting;
  if (theirs.digest != body.identity.digest) compare(peer, body.identity);
  if (theirs.previous != previous_.digest) compare(peer, previous_);
}

/// Throws if the peer's signature of that body is another. A body that it left out is no reason.
void Circle::compare(int peer, const Identity& mine) const {
  if (mine.first == 0) return;  // there was none
  const auto found = places_[static_cast<std::size_t>(peer)].seat->log.read(mine.first, mine.turn);
  if (!found || (found->signature == mine.signature && found->phase == mine.phase)) return;
  throw SignatureDiffers(fmt::format("rank {} asked for {}, rank {} for {}", parts_.rank, describe(mine.signature),
                                     peer, describe(found->signature)),
                         peer, found->signature);
}

void Circle::leave_out(SharedBody& body) {
  if (body.is_oldest()) {
    if (begun_) {
      steps_.abandon();
      previous_ = body.identity;
      parts_.commons->ring_all();
    }
    begun_ = false;
    queue_.pop_front();
  } else {
    queue_.erase(std::find(queue_.begin(), queue_.end(), &body));
  }
}

}  // namespace tutti::shared
