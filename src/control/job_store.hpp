// job_store.hpp: the job's key-value store: one rank keeps it, the others ask over the control network.
// SPDX-License-Identifier: Apache-2.0
//
// The keeper is rank 0 at first, and hands the store over when it leaves (store_handover.hpp). A message is lost only with a
// rank that forwards it and dies, so a request is repeated until its answer has come, to the keeper of that time, which takes each
// request once (kept_store.hpp).
//
// Thread rule: under the progress lock, as all of Control.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include <tutti/clock.hpp>

#include "control/kept_store.hpp"
#include "control/message.hpp"
#include "control/store_handover.hpp"

namespace tutti::control {

class JobStore {
 public:
  // What the store needs of the network around it.
  struct Outside {
    std::function<void(int to, RoutedBody body)> send;  // to another rank or to this one
    std::function<void(StoreMoved moved)> flood;
    std::function<bool(int rank)> is_lost;   // the rank, or this one
    std::function<bool(int rank)> is_there;  // neither lost nor known to leave
  };
  // A request of this rank. The keeper's answer comes in Control::poll() or Control::received().
  struct Asked {
    store::Request request;
    std::optional<store::Reply> reply;
    std::optional<int> lost;  // no answer will come: the keeper that is lost, or this rank, which the others gave up
    [[nodiscard]] bool has_ended() const { return reply.has_value() || lost.has_value(); }
  };

  JobStore(int rank, int size, Duration retry, Outside outside);

  // The request's id is given here.
  std::shared_ptr<const Asked> ask(TimePoint now, store::Request request);
  // Nobody waits for the answer any more. Whether a change took effect is open.
  void give_up(const Asked& asked);
  // As far as this rank knows.
  [[nodiscard]] int keeper() const { return keeper_; }

  void on_asked(int from, const StoreAsked& message);
  void on_answered(const StoreAnswered& message);
  void on_offered(int from, const StoreOffered& message);
  void on_fetched(TimePoint now, int from, const StoreFetched& message) { handover_.on_fetched(now, from, message); }
  void on_part(int from, const StorePart& message);
  void on_moved(TimePoint now, const StoreMoved& message);
  // A rank said goodbye; has closed its links; is lost.
  void rank_leaves(TimePoint now, int rank, bool has_store);
  void rank_left(int rank);
  void rank_lost(TimePoint now, int rank);

  // This rank leaves, and asks nothing any more. Returns whether it has the store.
  bool leave(TimePoint now);
  // It has the store: without it, the store would be lost to those that stay.
  [[nodiscard]] bool must_stay() const { return is_leaving_ && (handover_.gives() || handover_.has_all()); }

  bool poll(TimePoint now);
  [[nodiscard]] TimePoint next_timer() const;

 private:
  struct Pending {
    std::shared_ptr<Asked> asked;
    std::uint32_t slot = 0;
    Duration wait{};  // until the repetition after the next
    TimePoint repeat_at{};
  };

  void send(Pending& pending, TimePoint now);
  void send_all(TimePoint now);
  void fail_all(int lost);
  [[nodiscard]] std::uint32_t free_slot() const;
  void become_keeper(TimePoint now);
  [[nodiscard]] int next_staying(int above) const;

  int rank_, size_;
  Duration retry_;
  Outside outside_;
  int keeper_ = 0;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Pending> pending_;  // this rank's requests, by id
  KeptStore kept_;                            // the keeper's; a successor's that has fetched everything
  StoreHandover handover_;
  bool is_leaving_ = false;
};

}  // namespace tutti::control
