// control.hpp: the small network beside the data: aborts, losses, goodbyes, probes, group creation.
// SPDX-License-Identifier: Apache-2.0
//
// Every rank keeps control links to the ranks 1, 2, 4, … away in both directions: O(log n) links. A message for all
// ranks is *flooded*: each rank forwards it once, over all its links. A message for one rank is *routed* over links
// that come closer to it. A question that is not answered is sent directly the next time, because a rank on the route
// may be stuck; among many ranks only after a while. When a rank is gone, each rank linked to it opens a link to the
// next living rank beyond it and repeats the recent floods there; the links to the nearest living ranks on both sides
// always form a ring.
//
// Why all ranks name the same rank.
//
//  1. Floods of one origin arrive everywhere in the order in which they were sent: links keep order, ranks forward in
//     order of arrival, and a new link starts with the recent floods, in order.
//  2. Facts (which rank accuses which, which rank is alive, which rank proposes to break which group) are flooded as
//     they are found. The lowest living rank, the *decider*, collects them for the settle window, applies one rule, and
//     floods its decision. All ranks, the decider included, act on decisions only. By 1 all ranks see its decisions in
//     the same order.
//  3. The rule. If the accused does not answer, it is lost. If it answers and one rank accuses it, the link between the
//     two is cut and the higher one of them is lost: one of the two has to go, and all ranks must choose the same one.
//     If it answers and several ranks accuse it, or it reports that it was stopped, it is lost. A living rank that is
//     declared lost learns it and is fenced off: the ranks linked to it ignore it from then on.
//  4. The decider itself may have failed. It is passed over when it was accused and nothing was heard of it for the
//     settle window and the takeover time. Two deciders can contradict each other only if the first one lives, lost a
//     link, and its decision took longer than both times together; this is the only assumption about time. Two ranks
//     whose only link is cut cannot be distinguished from a rank that lost the other: there each names the other.
//  5. A rank that leaves is not lost. It floods a goodbye with its positions, stays in the network until the ranks it
//     has links to have confirmed the goodbye, and the nearest ranks on both sides, which it looks for anew when they
//     leave, all that it has forwarded since; it closes its links afterwards. A rank that could not even connect to
//     the accused is no *witness*: the accused may have left. Such an accusation is not decided until a rank that had a
//     link to the accused accuses it, or reports that it left (Departed). Ranks at the accused's places in the network
//     are witnesses in any case, because a rank does not leave before those links are open.
//  6. Silence counts as death only where nothing else can be known: `life` asks the system, any byte from the peer
//     counts, and the limit grows with the lag that both ends have seen.
//     A launcher that watches the processes knows more: what it says of one that ended is decided at once. Only ranks at
//     the ended one's places in the network pass it on, because they know whether it had said goodbye before.
//  7. Nothing waits forever: if a suspicion is undecided for the silence limit, or an abort for `patience`, each rank
//     decides it for itself, by the same rule over the same facts.
// Does no I/O of its own: time, links and randomness are passed in, so that it runs in the simulator. One thread at a
// time (the progress lock). The listener is called from poll() only, and may call any method of Control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/transport.hpp>

#include "base/random.hpp"
#include "control/cause.hpp"
#include "control/control_options.hpp"
#include "control/creation.hpp"
#include "control/job_store.hpp"
#include "control/message.hpp"
#include "control/network.hpp"
#include "control/verdicts.hpp"

namespace tutti::control {

// A rank will not take part in call number `sequence`, because it found an error before it sent anything.
struct Refusal {
  int rank = 0;
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  std::string text;
};

class ControlListener {
 public:
  virtual ~ControlListener() = default;
  // The group broke; the same cause on every rank, once per group and epoch. All ranks are told, members or not.
  virtual void on_abort(std::uint64_t group, std::uint32_t epoch, const Cause& cause) = 0;
  // A rank of the world is lost; the same cause on every rank, once per rank. `rank` may be this rank: then the others
  // have declared it lost.
  virtual void on_lost(int rank, const Cause& cause) = 0;
  // A rank said goodbye: it takes part in no call beyond these. May be called again, with positions in further groups.
  virtual void on_left(int rank, std::span<const Position> positions) = 0;
  virtual void on_refusal(const Refusal& refusal) = 0;
  // A question; answer it with Control::answer(from, id, …), now or later or never.
  virtual void on_probe(int from, std::uint64_t id, std::span<const std::byte> question) = 0;
  virtual void on_probe_answer(int from, std::uint64_t id, std::span<const std::byte> answer) = 0;
};

class Control final : private NetworkListener {
 public:
  // `random` makes group ids: seeded by the operating system's randomness, or by the seed of a simulation.
  Control(Transport& transport, const Clock& clock, Random random, const ControlOptions& options = {});

  // Opens the links. The caller forwards the calls of its TransportListener: control() → received(), lost() →
  // link_lost(), unreachable() → link_refused(), parted() → link_parted().
  void start(ControlListener& listener);
  void received(int peer, std::span<const std::byte> message);
  void link_lost(int peer, std::string_view reason);
  void link_refused(int peer, std::string_view reason);
  void link_parted(int peer);
  // The launcher has seen this rank's process end; `how` is a clause: "its process 17 was killed by signal 9".
  void process_ended(int rank, std::string_view how);
  // Timers, decisions and calls of the listener; true if anything happened. Call it after every Transport::poll().
  bool poll();
  // The latest time at which poll() has something to do, if nothing is received before.
  [[nodiscard]] TimePoint next_timer() const;

  // Proposes to break a group. If other ranks propose other causes at about the same time, one is chosen for all;
  // on_abort reports it on every rank, here too. Ignored for a group that is broken already or about to be.
  void abort(std::uint64_t group, std::uint32_t epoch, const Cause& cause);
  void refuse(std::uint64_t group, std::uint32_t epoch, std::uint64_t sequence, std::string_view text);
  // Asks another rank, at most probe_bytes_max; returns the question's id. Best effort: ask again if no answer comes.
  std::uint64_t probe(int to, std::span<const std::byte> question);
  void answer(int to, std::uint64_t id, std::span<const std::byte> answer);
  // Starts making a group together with its other members; see creation.hpp. InvalidArgument for a list that is empty,
  // has a rank twice or outside the world, or lacks this rank.
  std::shared_ptr<const Creation> create(CreationRequest request);
  // The caller no longer waits for the group: it is not made, or breaks with this cause if it was made just now.
  void give_up(const Creation& creation, const Cause& cause);
  // The key-value store of the job.
  [[nodiscard]] JobStore& store() { return store_; }
  // Says goodbye to all ranks: this rank takes part in no call beyond these positions. It stays in the network,
  // receives decisions and forwards messages, until leave().
  void announce_leave(std::span<const Position> positions);
  // Whether every linked peer has this rank's goodbye and has compared the positions with its own, nothing that this rank has
  // forwarded can be lost with it, the members of groups that it has made know of them, another rank has the job's store if
  // this one kept it, and no rank's proposal to break a group is undecided.
  [[nodiscard]] bool may_leave() const {
    return network_.may_leave() && !creations_.has_untaken() && !verdicts_.has_proposals() && news_.empty() &&
           (silenced() || !store_.must_stay());
  }
  // Nothing is sent or reported afterwards; close the transport next.
  void leave();

  [[nodiscard]] bool has_left(int rank) const { return left_.contains(rank); }
  // What is known of a rank that was given up.
  enum class Loss : std::uint8_t {
    none,       // it was not
    uncertain,  // it may be alive: stopped, or behind a link that is cut
    ended,      // the launcher, or the system, has seen its process end: it cannot come back
  };
  [[nodiscard]] Loss loss_of(int rank) const {
    if (!lost_.contains(rank)) return Loss::none;
    const bool has_ended = ended_.contains(rank) || (options_.life && options_.life(rank) == Life::ended);
    return has_ended ? Loss::ended : Loss::uncertain;
  }
  // Whether an answer of this rank may still come: it is neither lost nor gone, as far as is known, and nor is this one.
  [[nodiscard]] bool may_answer(int rank) const {
    return !silenced() && !lost_.contains(rank) && !parted_.contains(rank);
  }
  // Whether somebody accuses the rank, and it is not decided yet.
  [[nodiscard]] bool is_accused(int rank) const { return !silenced() && verdicts_.is_accused(rank); }

 private:
  void on_flood(int origin, const FloodBody& body) override;
  void on_routed(int origin, RoutedBody body) override;
  void on_goodbye_of(int peer) override;
  void on_silent(int peer, const std::string& why) override;

  void accuse(const Suspect& suspect);
  void on_suspect(int accuser, const Suspect& message);
  void lose(int rank, const Cause& cause);
  void retire(int rank, std::span<const Position> positions);
  void part_from(int rank);
  void break_group(const Broken& broken);
  [[nodiscard]] bool silenced() const { return has_said_goodbye_ || lost_.contains(rank_); }

  const Clock* clock_;
  ControlOptions options_;
  int rank_, size_;
  ControlListener* listener_ = nullptr;
  ControlNetwork network_;
  Verdicts verdicts_;
  Creations creations_;
  JobStore store_;
  std::map<int, Cause> lost_, left_;  // who left may still be there, and finish what it has posted:
  std::set<int> ended_;               // whose process the launcher has seen end
  std::set<int> closed_;              // who has said goodbye on every link to this rank,
  std::set<int> parted_;              // and who has left, too: nothing more is heard of it
  std::deque<std::function<void(ControlListener&)>> news_;
  std::uint64_t next_probe_ = 1;
  TimePoint answered_{};  // an accusation
  bool is_leaving_ = false, has_said_goodbye_ = false;
};

}  // namespace tutti::control
