// circle_body.hpp: one collective of a circle, with what each of its parts asks of the protocol. For circle.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "shared/circle.hpp"

namespace tutti::shared {

class Circle::SharedBody final : public Body {
 public:
  enum class Stage : std::uint8_t { waiting, done, gone };

  explicit SharedBody(Circle& home) : circle(home) {}

  bool poll() override {
    if (stage == Stage::waiting && circle.progress()) circle.parts_.commons->ring_all();
    return stage == Stage::done;
  }
  void cancel() override {
    if (stage == Stage::waiting) circle.leave_out(*this);
    stage = Stage::gone;
  }
  [[nodiscard]] std::string_view how() const override {
    return part == Part::direct ? "arrays in place over shared memory" : name_of(movement);
  }
  [[nodiscard]] int steps_done() const override {
    if (stage == Stage::done) return step_count();
    return is_oldest() ? static_cast<int>(circle.steps_.rounds_taken()) : 0;
  }
  [[nodiscard]] int step_count() const override { return static_cast<int>(movement.rounds); }
  void add_waiting_for(std::vector<int>& ranks) const override {
    if (stage != Stage::waiting) return;
    // Whoever keeps the oldest keeps all of them.
    const auto add = [&](int peer) {
      if (std::find(ranks.begin(), ranks.end(), peer) == ranks.end()) ranks.push_back(peer);
    };
    if (!circle.begun_) return;
    const SharedBody& oldest = *circle.oldest_;
    if (oldest.part == Part::slots) {
      circle.steps_.visit_awaited(oldest.slot_work, add);
    } else {
      circle.steps_.visit_awaited(oldest.door_work, add);
    }
  }
  [[nodiscard]] bool is_oldest() const { return circle.oldest_ == this; }

  // What Steps asks for, in each part; and on first contact the look at a peer's signature.
  struct SlotWork : Carrier {
    explicit SlotWork(SharedBody& owner) : body(owner) {}
    void leave(std::int64_t round, int slot) {
      Carrier::leave(round, slot);
      if (round == 0) body.circle.greet(body);
    }
    void meet(int peer, int) { body.circle.meet(body, peer); }
    SharedBody& body;
  };
  // What fits into doors. The same for one round, with less to ask.
  struct ShortWork {
    [[nodiscard]] int take_sources() const { return body.slot_work.take_sources(); }
    [[nodiscard]] int take_source(int i) const { return body.slot_work.take_source(i); }
    void meet(int peer, int) { body.circle.meet(body, peer); }
    void leave(std::int64_t, int) {
      body.slot_work.leave_in_door(body.circle.greeting_of(body.circle.parts_.rank).payload);
      body.circle.greet(body);
    }
    void take(std::int64_t, int, int peer) {
      body.slot_work.take_from_door(body.circle.greeting_of(peer).payload, peer);
    }
    void finish(std::int64_t, int) { body.slot_work.finish(0, 0); }
    SharedBody& body;
  };
  // A part without slots: of all (a meeting), or of nobody.
  struct DoorWork {
    [[nodiscard]] static int answer_sources() { return 0; }
    [[nodiscard]] static int answer_source(int) { return -1; }
    static void answer(std::int64_t, int) {}
    [[nodiscard]] int take_sources() const { return met ? 0 : body.start.spec->size - 1; }
    [[nodiscard]] int take_source(int i) const { return next_but(i, body.start.spec->rank, body.start.spec->size); }
    static bool expects(int, std::int64_t) { return true; }
    void meet(int peer, int) { body.circle.meet(body, peer); }
    void leave(std::int64_t, int) {
      // Whoever waits for this line looks at it all the time: it is written in one go.
      const Whereabout here = met ? Whereabout{}
                                  : whereabout_of(body.start, *body.circle.parts_.commons, body.last_stamp(),
                                                  body.slot_work.streams(body.start.input, body.start.output));
      body.circle.greet(body);
      if (met) return;
      std::memcpy(body.circle.greeting_of(body.start.spec->rank).payload, &here, sizeof here);
      body.whereabouts[static_cast<std::size_t>(body.start.spec->rank)] = here;
    }
    void take(std::int64_t, int, int peer) {
      std::memcpy(&body.whereabouts[static_cast<std::size_t>(peer)], body.circle.greeting_of(peer).payload,
                  sizeof(Whereabout));
    }
    void finish(std::int64_t, int) {
      if (met) body.direct.carry_out();
    }
    SharedBody& body;
    bool met = false;
  };

  enum class Part : std::uint8_t { meeting, slots, direct };
  [[nodiscard]] RunNumber number() const { return {identity.first, identity.signature.sequence, identity.turn}; }
  [[nodiscard]] Stamp last_stamp() const {
    return identity.first + (part == Part::meeting ? 1 : 0) + movement.span - 1;
  }

  Circle& circle;
  Stage stage = Stage::gone;
  Part part = Part::slots;
  bool meets = false;              // its first part is a meeting
  bool is_single = false;          // its part with slots or doors is: one round, not answered
  bool expects_next = false;       // the next one's first lines have to come back
  std::int64_t touched_lines = 0;  // of the door that is awaited
  int looks_per_touch = 1;
  BodyStart start;
  Movement movement;
  Identity identity;
  Run run;  // of its part with slots or doors; whether it crosses is found out each time
  std::vector<Whereabout> whereabouts;
  Direct direct;
  SlotWork slot_work{*this};
  ShortWork short_work{*this};
  DoorWork door_work{*this};
};

}  // namespace tutti::shared
