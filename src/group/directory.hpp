// directory.hpp: the groups of one rank, and the ranks that are gone: what the transport and the control network report is handed to
// the groups that it concerns.
// SPDX-License-Identifier: Apache-2.0
//
// Thread rule: under the runtime's lock, but for add() and remove(), which take it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <tutti/transport.hpp>

#include "control/control.hpp"
#include "group/closed_groups.hpp"

namespace tutti {

class GroupCore;
class Runtime;

class GroupDirectory final : public TransportListener, public control::ControlListener {
 public:
  explicit GroupDirectory(Runtime& runtime);

  void add(GroupCore& group);
  void remove(GroupCore& group);
  /// By id. A copy may be walked while groups break.
  [[nodiscard]] const std::map<std::uint64_t, GroupCore*>& groups() const { return groups_; }
  [[nodiscard]] ClosedGroups& closed() { return closed_; }
  /// The group of all ranks that init() made; 0 before.
  [[nodiscard]] std::uint64_t world_group() const { return world_group_; }
  /// How far this rank has come in each group.
  [[nodiscard]] std::vector<control::Position> positions() const;
  /// Whether a peer may still name a call that differed; asks it again if it is time to.
  bool pursue_differences();

  [[nodiscard]] bool has_left(int world_rank) const { return left_.contains(world_rank); }
  /// How far a rank that has left had come in the group; nothing if it has not left, or has not told yet.
  [[nodiscard]] std::optional<control::Position> position_when_leaving(int world_rank, std::uint64_t group) const;
  /// The link to it broke, whatever the others say.
  [[nodiscard]] bool is_unreachable(int world_rank) const { return unreachable_.contains(world_rank); }
  /// It broke while it was open: what the other one had sent may be lost with it.
  [[nodiscard]] bool has_lost_link(int world_rank) const { return lost_links_.contains(world_rank); }
  /// Local peers that were lost or left, and whose processes are gone by now, no longer read this rank's memory.
  void confirm_ended();

  // TransportListener, ControlListener: called from poll().
  Verdict arrived(int peer, const Envelope& envelope) override;
  void control(int peer, std::span<const std::byte> message) override;
  void lost(int peer, std::string_view reason) override;
  void unreachable(int peer, std::string_view reason) override;
  void parted(int peer) override;
  void on_abort(std::uint64_t group, std::uint32_t epoch, const control::Cause& cause) override;
  void on_lost(int rank, const control::Cause& cause) override;
  void on_left(int rank, std::span<const control::Position> positions) override;
  void on_refusal(const control::Refusal& refusal) override;
  void on_probe(int from, std::uint64_t id, std::span<const std::byte> question) override;
  void on_probe_answer(int from, std::uint64_t id, std::span<const std::byte> answer) override;

 private:
  [[nodiscard]] GroupCore* find(std::uint64_t group) const;
  void hand_on(const control::Refusal& refusal, GroupCore& group);

  Runtime& runtime_;
  std::map<std::uint64_t, GroupCore*> groups_;
  std::uint64_t world_group_ = 0;
  ClosedGroups closed_;
  std::map<int, std::map<std::uint64_t, control::Position>>
      left_;  // ranks that said goodbye: how far they came, by group
  std::map<int, control::Cause> lost_;
  std::set<int> unreachable_, lost_links_;
  std::set<int> unconfirmed_;  // local peers that are gone, and whose processes were still there when last looked at
  // What concerns groups that this rank has not made its handle of yet; the latest few.
  std::deque<std::pair<std::uint64_t, control::Cause>> early_aborts_;
  std::deque<control::Refusal> early_refusals_;
  struct EarlyMessage {
    int peer;
    Envelope envelope;
  };
  std::deque<EarlyMessage> early_messages_;
};

}  // namespace tutti
