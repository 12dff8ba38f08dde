// agreement.hpp: whether the members of a group make the same calls: compared as messages arrive, as ranks leave, and by their records.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <tutti/transport.hpp>

#include "group/difference.hpp"
#include "group/failure.hpp"

namespace tutti {

class CallAgreement {
 public:
  CallAgreement(GroupState& state, RunningOperations& running, GroupFailure& failure)
      : state_(state), running_(running), failure_(failure) {}

  /// The header of a message of this group.
  TransportListener::Verdict arrived(int world_peer, const Envelope& envelope);
  /// A call was made: what arrived early for it is compared, and ranks that left later than this one has come.
  void compare_new_call(const Signature& own);
  void report_mismatch(const Signature& own, const Signature& theirs, int world_peer);

  /// A peer asks about a difference, or has answered about one.
  StallAnswer::State compare_calls(int world_peer, const StallProbe& probe);
  void take_answer(int world_peer, StallAnswer::State state);
  /// Asks about a difference that is not settled, if it is time to. True: the difference is certain, and no call ends well any more;
  /// the deadlines of calls bound the wait for the peer's words.
  bool settle(TimePoint now);
  /// Whether a peer may still say what differed; asks it again if it is time to.
  [[nodiscard]] bool is_naming_difference(TimePoint now);
  /// What this rank knows to have differed, and has not broken the group for yet: the last chance to report it.
  [[nodiscard]] std::optional<OpenDifference> what_differed() const;

  /// The calls that this rank takes part in, as long as it makes no more.
  [[nodiscard]] control::Position position() const;
  void member_left(int world_rank);
  /// A member left the job without taking part in the call of this number.
  void report_left(int world_rank, std::uint64_t sequence);
  /// A transfer of this operation failed, with a rank that has left. False: that its link is lost will be reported.
  bool report_leaver(const Operation& operation, int peer);

  /// Nothing is open that a new call would have to be compared with.
  [[nodiscard]] bool is_quiet() const { return early_.empty() && leavers_.empty() && !difference_; }

 private:
  [[nodiscard]] StallProbe question(StallProbe::About about) const;
  [[nodiscard]] CallOf call_of(const Signature& own) const;
  [[nodiscard]] OpenDifference difference_in(const Signature& own, const Signature& theirs, int world_peer) const;
  [[nodiscard]] OpenDifference difference_before_call(std::uint64_t sequence, int world_peer) const;
  void open(OpenDifference difference);
  void pursue(TimePoint now);
  void compare_with_leaver(int world_rank, const control::Position& theirs);

  GroupState& state_;
  RunningOperations& running_;
  GroupFailure& failure_;
  std::optional<OpenDifference> difference_;
  std::map<int, control::Position> leavers_;  // by rank in the world: the calls that a member took part in, and left
  std::map<std::pair<std::uint64_t, int>, Signature>
      early_;  // of calls not made here yet: by number and rank in the world
};

}  // namespace tutti
