// job_store.hpp: the job's key-value store: rank 0 keeps it, the others ask over the control network.
// SPDX-License-Identifier: Apache-2.0
//
// A message is lost only with a rank that forwards it and dies, so a request is repeated until its answer has come. Each request takes
// effect once, however often it arrives: a rank gives each request a slot that no other of its requests under way has, and the
// keeper remembers the latest request of each slot with its answer. A get or wait for a key that is not there stays with the keeper, which
// answers when somebody sets the key.
//
// Thread rule: under the progress lock, as all of Control.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include <tutti/clock.hpp>

#include "control/message.hpp"
#include "store/service.hpp"

namespace tutti::control {

class JobStore {
 public:
  static constexpr int keeper = 0;

  // What the store needs of the network around it.
  struct Outside {
    std::function<void(int to, RoutedBody body)> send;  // to another rank or to this one
    std::function<bool(int rank)> may_answer;
  };
  // A request of this rank. The keeper's answer comes in Control::poll() or Control::received().
  struct Asked {
    store::Request request;
    std::optional<store::Reply> reply;
    bool is_lost = false;  // the keeper is gone: no answer will come
    [[nodiscard]] bool has_ended() const { return reply.has_value() || is_lost; }
  };

  JobStore(int rank, Duration retry, Outside outside) : rank_(rank), retry_(retry), outside_(std::move(outside)) {}

  // The request's id is given here.
  std::shared_ptr<const Asked> ask(TimePoint now, store::Request request);
  // Nobody waits for the answer any more. Whether a change took effect is open.
  void give_up(const Asked& asked);

  void on_asked(int from, const StoreAsked& message);
  void on_answered(int from, const StoreAnswered& message);
  // A rank is lost or has left: the keeper forgets what it waits for; without the keeper all requests end.
  void remove_rank(int rank);
  bool poll(TimePoint now);
  [[nodiscard]] TimePoint next_timer() const;

 private:
  struct Pending {
    std::shared_ptr<Asked> asked;
    std::uint32_t slot = 0;
    Duration wait{};  // until the repetition after the next
    TimePoint repeat_at{};
  };
  // The latest request of a slot, as the keeper sees it.
  struct Served {
    std::uint64_t id = 0;
    StoreAnswered answer;
  };

  void send(Pending& pending, TimePoint now);
  [[nodiscard]] std::uint32_t free_slot() const;
  void serve(int from, store::Request request, Served& served);

  int rank_;
  Duration retry_;
  Outside outside_;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Pending> pending_;               // this rank's requests, by id
  store::Service service_;                                 // the keeper's
  std::map<int, std::map<std::uint32_t, Served>> served_;  // by rank and slot
};

}  // namespace tutti::control
