// creation.hpp: creation of groups by their members only.
// SPDX-License-Identifier: Apache-2.0
//
// Each member tells the lowest member that it has joined. Once all have, the lowest member makes a unique id and sends
// it to all, together with its blob. Joins are repeated until an answer comes, so that a message lost with a dying rank
// does no harm. A creation is identified by the ordered members, the key, and its number among the creations with these
// that the rank has started: many may be under way, started in different orders on different ranks.
//
// A creation that one member gave up fails for all. The lowest member remembers it, so that a late member is told at
// once and the numbers stay the same everywhere. If the group was made just before, it is aborted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <tutti/clock.hpp>

#include "base/random.hpp"
#include "control/cause.hpp"
#include "control/message.hpp"

namespace tutti::control {

struct CreationRequest {
  std::vector<int> members{};     // ranks in the world; the order is the group's
  std::uint64_t key = 0;          // tells apart groups with the same members; the same on all of them
  std::vector<std::byte> blob{};  // the lowest member's is handed to all; at most blob_bytes_max
  TimePoint deadline = TimePoint::max();
};

// How a creation stands on this rank. Changes in Control::poll() and Control::received().
struct Creation {
  enum class State : std::uint8_t { pending, ready, failed };
  State state = State::pending;
  std::uint64_t group = 0;      // when ready: the id, never 0
  std::vector<std::byte> blob;  // when ready: the lowest member's
  Cause cause;  // when failed: mismatch, timeout or lost; blames the ranks that did not join, or are lost
};

class Creations {
 public:
  // What creations need of the network around them.
  struct Outside {
    std::function<void(int to, RoutedBody body)> send;                         // to another rank or to this one
    std::function<void(std::uint64_t group, const Cause& cause)> abort_group;  // a group that was made in vain
    std::function<const Cause*(int rank)> gone;                                // why a rank is gone; nullptr: it is not
  };
  Creations(int rank, Random random, Duration retry, Outside outside)
      : rank_(rank), random_(random), retry_(retry), outside_(std::move(outside)) {}

  std::shared_ptr<const Creation> start(TimePoint now, CreationRequest request);
  // This rank no longer waits for a creation that is pending.
  void give_up(const Creation& creation, const Cause& cause);
  void on_join(int from, const Join& join);
  void on_missing(const Missing& missing);
  void on_made(int from, const Made& made);
  void on_taken(int from, const Taken& taken);
  void on_gave_up(int from, const GaveUp& given_up);
  void on_called_off(const CalledOff& called_off);
  // The rank is lost, or has closed its links: groups whose lowest member it is are never made.
  void remove_rank(int rank, const Cause& cause);
  // The rank has left. Groups that it has joined before are still made; it finishes those that it leads before it goes.
  void member_left(int rank, const Cause& cause);
  // This rank leaves: it joins no further groups.
  void leave(const Cause& cause);
  // Groups that this rank has made and that not all members have heard of.
  [[nodiscard]] bool has_untaken() const { return !untaken_.empty(); }
  bool poll(TimePoint now);
  [[nodiscard]] TimePoint next_timer() const;

 private:
  // A creation that this rank has started.
  struct Own {
    CreationRequest request;
    std::shared_ptr<Creation> creation;
    int lowest = 0;
    Duration wait{};  // until the join after the next
    TimePoint next_join{};
    Cause missing{};  // the latest the lowest member told
  };
  // A creation that this rank leads, as the lowest of its members: started by others, perhaps, before itself.
  struct Led {
    std::uint32_t member_count = 0;
    std::vector<int> members;  // as far as listed
    std::set<int> joined;
    std::set<int> taken;      // members that have the group
    std::uint64_t group = 0;  // once made
    std::vector<std::byte> blob;
    std::optional<Cause> failed;
  };

  void join(const CreationName& name, Own& own, TimePoint now);
  void make(const CreationName& name, Led& led);
  void call_off(int member, const CreationName& name, const Cause& cause);
  void fail_led(const CreationName& name, Led& led, const Cause& cause);
  void end_own(const CreationName& name, const Cause& cause);
  void give_up(const CreationName& name, const Cause& cause);
  void fail_without(const CreationName& name, int rank, const Cause& cause);
  // Why a creation would fail now, as far as its lowest member knows, and as far as this rank knows.
  [[nodiscard]] Cause missing(const CreationName& name, const Led& led) const;
  [[nodiscard]] Cause too_late(const CreationName& name, const Own& own) const;
  void retire(const CreationName& name);
  void take(int member, const CreationName& name);
  void repeat_made(TimePoint now);

  int rank_;
  Random random_;
  Duration retry_;
  Outside outside_;
  std::map<std::uint64_t, std::uint64_t> started_;  // by list: how many
  std::map<CreationName, Own> own_;
  std::map<CreationName, Led> led_;
  std::map<CreationName, TimePoint> untaken_;  // led, made, and not taken by all: when they are told again
  std::set<CreationName> given_up_;            // by this rank, lately
  std::optional<Cause> leaving_;               // this rank
  std::set<int> has_left_;                     // others
  std::deque<CreationName> retired_;           // led, and over; kept for latecomers, up to a number
};

}  // namespace tutti::control
