// running_operations.cpp: the calls of a group that are under way.
// SPDX-License-Identifier: Apache-2.0
#include "group/running_operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/extent.hpp"
#include "base/soon.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti {

std::vector<std::shared_ptr<Operation>> RunningOperations::all() const {
  auto all = messages_.all();
  for (auto place = collectives_.first(); place < collectives_.end(); ++place) all.push_back(collectives_.at(place));
  return all;
}

const Operation* RunningOperations::oldest(const Operation* except) const {
  const Operation* oldest = nullptr;
  const auto consider = [&](const Operation& operation) {
    if (&operation != except && (oldest == nullptr || operation.started_at < oldest->started_at)) oldest = &operation;
  };
  if (!collectives_.empty()) consider(*collectives_.oldest());
  if (!messages_.empty()) consider(*messages_.all().front());
  return oldest;
}

std::shared_ptr<Operation> RunningOperations::take() {
  // Those that were taken longest ago are the likeliest to be free again. If a few are not, many are under way.
  constexpr std::size_t tries = 4;
  for (std::size_t i = 0; i < std::min(tries, pool_.size()); ++i) {
    if (next_pooled_ >= pool_.size()) next_pooled_ = 0;
    const auto& pooled = pool_[next_pooled_++];
    if (pooled.use_count() == 1) {
      pooled->reset();
      return pooled;
    }
  }
  auto operation = std::make_shared<Operation>();
  operation->reset();
  if (pool_.size() < pool_limit) pool_.push_back(operation);
  return operation;
}

void RunningOperations::track(const std::shared_ptr<Operation>& operation, std::shared_ptr<GroupCore> group,
                              Duration timeout) {
  Runtime& runtime = *state_.runtime;
  const TimePoint now = soon(runtime.clock());
  operation->group = std::move(group);
  operation->timeout = timeout > Duration::zero() ? timeout : runtime.parts().default_timeout;
  operation->started_at = operation->probed_at = now;
  operation->request.deadline = deadline_after(now, operation->timeout);
  earliest_deadline_ = std::min(earliest_deadline_, operation->request.deadline);
  if (operation->is_message()) {
    messages_.add(operation);
  } else {
    collectives_.add(operation);
  }
  runtime.activate(*operation->group);
}

// Sizes go first, to be learned or to be compared: the transfer behind them begins later than calls that were started after this one.
static bool has_two_stages(const Request& request) { return request.sizes_follow || !request.recv_sizes.empty(); }

void RunningOperations::note_record(Operation& operation, std::uint64_t number, const record::CallShape& shape) const {
  operation.record = number;
  if (number == 0) return;
  operation.recorded = shape;
  operation.record_started = state_.records.recorder()->started_at(number);
}

// A call that never ran, or failed, may not have come to know its way.
void RunningOperations::note_way(const Operation& operation) const {
  if (operation.is_message() || operation.recorded.how != 0) return;
  record::CallShape& shape = operation.shape->recorded;  // another call of it may have ended meanwhile
  if (shape.how != 0) return state_.records.recorder()->note_way(operation.record, shape.how);
  if (operation.call) state_.records.name_way(shape, operation.record, *operation.call, operation.shape->backend());
}

bool RunningOperations::must_wait(std::uint64_t place) const {
  if (place >= collectives_.first() + window) return true;
  const auto clash = [](const View& a, const View& b) { return a.present() && b.present() && overlap(a, b); };
  const Request& mine = collectives_.at(place)->request;
  const Backend& backend = collectives_.at(place)->shape->backend();
  const Backend::Order order = backend.order();
  for (std::uint64_t earlier = collectives_.first(); earlier < place; ++earlier) {
    const Operation* const other = collectives_.at(earlier).get();
    if (other->ended()) continue;
    const Request& theirs = other->request;
    const Backend::Order their_order = other->shape->backend().order();
    if (&other->shape->backend() == &backend) {
      const bool is_out_of_order = other->waits_for_turn || has_two_stages(theirs);
      if (order == Backend::Order::one_at_a_time || (order == Backend::Order::as_numbered && is_out_of_order))
        return true;
    } else if (std::max(order, their_order) == Backend::Order::one_at_a_time) {
      return true;  // what they share, the memory between local peers, is used in the order of the numbers
    }
    if (clash(mine.input, theirs.output) || clash(mine.output, theirs.output) || clash(mine.output, theirs.input))
      return true;
  }
  return false;
}

void RunningOperations::launch(Operation& operation) {
  operation.waits_for_turn = false;
  try {
    static_cast<void>(operation.shape->idle());
    operation.call = operation.shape->take();
    const Request& request = operation.request;
    const Buffers buffers{.input = static_cast<const std::byte*>(request.input.data()),
                          .output = static_cast<std::byte*>(request.output.data()),
                          .allocate = request.allocate ? &request.allocate : nullptr};
    if (!operation.call->start(buffers, request.signature)) return;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    operation.call->wake_peers();
    end(operation, nullptr);
  } catch (...) {
    listener_.went_wrong(operation, std::current_exception());
  }
}

// Calls end during the walk, which moves the first place. Those that come into the window have their turn in the next round, so that
// a round is short.
void RunningOperations::advance_collectives() {
  const std::uint64_t last = std::min(collectives_.end(), collectives_.first() + window);
  const bool ask_all = std::exchange(turns_changed_, false);
  const Backend* busy = nullptr;  // it carries out its calls one after the other: none is further than the first
  for (std::uint64_t place = collectives_.first(); place < last && !is_stopped_;
       place = std::max(place + 1, collectives_.first())) {
    const std::shared_ptr<Operation> operation = collectives_.at(place);
    if (operation->ended()) continue;
    if (operation->waits_for_turn) {
      if ((ask_all || turns_changed_) && !must_wait(place)) launch(*operation);
    } else if (operation->call && operation->failing.empty() && &operation->shape->backend() != busy) {
      try {
        if (operation->call->poll()) end(*operation, nullptr);
      } catch (...) {
        listener_.went_wrong(*operation, std::current_exception());
      }
      if (!operation->ended() && operation->shape->backend().order() != Backend::Order::any)
        busy = &operation->shape->backend();
    }
  }
}

void RunningOperations::mark_failing(Operation& operation, TransferProblem problem) {
  if (operation.failing.empty()) ++failing_count_;
  // A transport begins with the rank it speaks for, in the world; the report names that rank in other words.
  const std::string speaker = fmt::format("rank {}: ", state_.world_rank(state_.facts.rank));
  if (problem.reason.starts_with(speaker)) problem.reason.erase(0, speaker.size());
  operation.failing = std::move(problem.reason);
  operation.probed_at = TimePoint{};
  operation.failing_peers = std::move(problem.world_peers);
  operation.first_question = 0;
  operation.does_not_fit = problem.does_not_fit;
}

void RunningOperations::say_unfinished(const Operation& operation, const std::exception_ptr& error) const {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& reason) {
    state_.runtime->parts().log.warn("this process leaves the job, and {} has not ended well: {}",
                                     state_.names.call(operation), reason.what());
  }
}

void RunningOperations::end(Operation& operation, std::exception_ptr error) {
  if (operation.ended()) return;
  Runtime& runtime = *state_.runtime;
  if (!operation.failing.empty()) --failing_count_;
  if (error && runtime.drains()) say_unfinished(operation, error);  // no thread waits for it any more
  if (operation.record != 0) {
    note_way(operation);
    state_.records.recorder()->end(operation.record, operation.record_started, operation.recorded,
                                   error ? record::State::failed : record::State::ended);
  }
  if (operation.call && !error)
    operation.shape->give_back(std::move(operation.call));  // for the next call of this shape
  const bool is_message = operation.is_message();
  operation.end(std::move(error));
  if (operation.has_callbacks()) runtime.call_back(operation.shared_from_this());
  runtime.deactivate();
  if (is_message) return messages_.remove(operation);
  turns_changed_ = true;
  if (collectives_.oldest().get() == &operation) {
    collectives_.drop_ended();
    const std::uint64_t oldest =
        collectives_.empty() ? state_.calls.next() : collectives_.oldest()->request.signature.sequence;
    state_.stalls.forget_before(oldest);
    state_.calls.note_ended(oldest);
  }
  listener_.collective_ended();
}

}  // namespace tutti
