// circle.hpp: collectives of ranks that share a host, carried out in their common memory.
// SPDX-License-Identifier: Apache-2.0
//
// One circle for each group (or for the members of one host in a larger group). A member's *seat* lies in its own memory and is
// written by it alone; the others read it. Bodies are carried out one after the other, in the order in which they were started,
// which is the same on every member. Ended bodies are used again: a repeated call allocates nothing.
//
// Thread rule: one thread at a time. Nothing blocks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <tutti/error.hpp>

#include "engine/body.hpp"
#include "shared/carrier.hpp"
#include "shared/commons.hpp"
#include "shared/direct.hpp"
#include "shared/steps.hpp"

namespace tutti::shared {

class Circle {
 public:
  struct Parts {
    Commons* commons = nullptr;  // outlives the circle
    int rank = 0;
    int size = 1;
    bool cross_memory = false;    // every member may read every other's memory: agreed
    bool oversubscribed = false;  // more ranks than cores
    SharedLimits limits{};        // the same on every member
  };
  /// Takes this member's seat. Throws Error when memory runs out.
  explicit Circle(const Parts& parts);
  /// The seat goes back to the commons: only when no peer uses it any more (see is_vacant).
  ~Circle();
  Circle(const Circle&) = delete;
  Circle& operator=(const Circle&) = delete;

  /// Where this member's seat lies, for the others.
  [[nodiscard]] std::uint64_t seat_offset() const;
  /// One offset per member. Before the first body. `crowded`: some of them share cores, as all of them know.
  void connect(const std::vector<std::uint64_t>& offsets, bool crowded = false);

  /// The spec counts members; every member starts the same bodies in the same order, or leaves some out.
  Body& start(const BodyStart& start);
  /// A body that is done and was not released, once more, for a call that differs in its number and its arrays only; and all that
  /// can be done of it now. True if it is done again: then those who sleep have yet to be woken.
  bool run_again(Body& ended, const Signature& numbered, const std::byte* input, std::byte* output);
  /// Only after poll() returned true or cancel().
  void release(Body& body);
  /// The last thing that this member does: it will not touch the others' seats any more. No body is under way.
  void depart();
  /// Whether all others have departed.
  [[nodiscard]] bool is_vacant() const {
    return places_.empty() || own_->departed.load(std::memory_order_acquire) == parts_.size - 1;
  }

 private:
  class SharedBody;
  friend class SharedBody;

  // Inline in circle.cpp: a small call passes through all of them.
  inline void enqueue(SharedBody& body);
  inline void dequeue_oldest();
  inline void identify(SharedBody& body);
  [[noreturn]] static void refuse_pieces(const SharedBody& body);
  inline void note(SharedBody& body);
  inline void begin(SharedBody& body);
  inline void begin_slots(SharedBody& body);
  void go_on(SharedBody& body);
  inline bool advance(SharedBody& body);
  inline bool advance_single(SharedBody& body);
  template <class Advance>
  inline bool look(SharedBody& body, Advance advance_body);
  inline void end_oldest();
  bool progress();
  inline void expect_next(const SharedBody& body);
  inline void touch_awaited(const SharedBody& body) const;
  [[nodiscard]] Reach reach() const { return {.cross_memory = parts_.cross_memory, .limits = parts_.limits}; }
  [[nodiscard]] inline Native::Greeting& greeting_of(int rank) const;
  inline void greet(const SharedBody& body);
  inline void meet(const SharedBody& body, int peer);
  void compare(int peer, const Identity& mine) const;
  void compare_histories(int peer, const Identity& mine, std::uint32_t theirs) const;
  void leave_out(SharedBody& body);

  Parts parts_;
  Seat* own_ = nullptr;
  std::vector<Place> places_;
  Steps<Native> steps_;
  std::vector<std::unique_ptr<SharedBody>> bodies_;  // all that were ever made
  std::vector<SharedBody*> idle_;
  SharedBody* oldest_ = nullptr;                                      // it alone moves
  std::vector<SharedBody*> later_;                                    // those behind it
  bool begun_ = false;                                                // the oldest
  std::array<const SharedBody*, SignatureLog::entry_count> noted_{};  // whose signatures are in the log
  // Numbering.
  std::uint64_t sequence_ = 0;
  std::uint64_t next_step_ = 1, bodies_of_call_ = 0;
};

}  // namespace tutti::shared
