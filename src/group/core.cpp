// core.cpp: the door of a group: entering, numbering, starting and ending calls.
// SPDX-License-Identifier: Apache-2.0
#include "group/core.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/extent.hpp"
#include "group/check.hpp"
#include "group/runtime.hpp"
#include "intranode/intranode_executor.hpp"
#include "kernel/kernel.hpp"

namespace tutti {

GroupCore::GroupCore(std::shared_ptr<Runtime> runtime, GroupFacts facts, const Table& table)
    : runtime_(std::move(runtime)), facts_(std::move(facts)), table_(&table) {
  backends_ = Backends({.facts = &facts_,
                        .table = table_,
                        .transport = &runtime_->transport(),
                        .extensions = runtime_->backend_extensions()});
  runtime_->add(*this);
}

GroupCore::GroupCore(std::shared_ptr<Runtime> runtime, std::vector<int> world_of) : runtime_(std::move(runtime)) {
  facts_.rank = -1;
  facts_.size = static_cast<int>(world_of.size());
  facts_.world_of = std::move(world_of);
}

GroupCore::~GroupCore() {
  if (facts_.rank < 0) return;
  runtime_->remove(*this);
  prepared_.clear();
  backends_ = Backends();
  if (intranode_) runtime_->keep(std::move(intranode_));
}

GroupCore::Entry::Entry(GroupCore& core, std::string_view what) {
  core.runtime_->check_alive();
  const auto guard = core.runtime_->lock();
  if (core.has_thread_inside()) core.refuse_second_thread(what);
  enter(core);
}

void GroupCore::refuse_second_thread(std::string_view what) const {
  throw InvalidArgument(
      fmt::format("{}: {} was called while another thread is inside a call on the same group; use one group "
                  "per thread, or one thread at a time",
                  who(), what));
}

void GroupCore::check_usable() const {
  if (facts_.rank < 0) {
    throw InvalidArgument(
        "this process is not a member of the group; only members may call its verbs (see Group::rank())");
  }
  if (broken_) std::rethrow_exception(error_for(*broken_, nullptr));
}

std::shared_ptr<Operation> GroupCore::take_operation() {
  // Those that were taken longest ago are the likeliest to be free again. If a few are not, many are under way.
  constexpr std::size_t spins = 4;
  for (std::size_t i = 0; i < std::min(spins, pool_.size()); ++i) {
    const auto& pooled = pool_[next_pooled_++ % pool_.size()];
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

std::shared_ptr<CachedCall> GroupCore::check(const CallTerms& terms) {
  Request request = request_in_full(terms);
  check_collective(request, facts_.rank, facts_.size, layout_);
  Backend& backend = backends_.choose(request);
  auto shape = std::make_shared<CachedCall>(terms, std::move(request), backend);
  static_cast<void>(shape->idle());  // what the backend cannot prepare is refused before the call has a number
  return shape;
}

CachedCall& GroupCore::admit(const CallTerms& terms) {
  check_usable();
  if (CachedCall* const known = prepared_.find(terms)) return *known;
  try {
    return prepared_.add(check(terms), terms);
  } catch (const std::exception& error) {
    refuse(error.what());
    throw;
  }
}

std::shared_ptr<CachedCall> GroupCore::prepare(const CallTerms& terms) {
  runtime_->check_alive();
  const auto guard = runtime_->lock();
  check_usable();
  if (CachedCall* const known = prepared_.find(terms)) return known->shared_from_this();
  return prepared_.add(check(terms), terms).shared_from_this();
}

std::shared_ptr<Operation> GroupCore::make_operation(CachedCall& shape, const CallTerms& terms, Duration timeout) {
  auto operation = take_operation();
  operation->request = shape.request_of(terms);
  operation->shape = shape.shared_from_this();
  track(operation, timeout);
  return operation;
}

// From here on deadlines, stalls and failures are watched for it.
void GroupCore::track(const std::shared_ptr<Operation>& operation, Duration timeout) {
  const TimePoint now = runtime_->clock().now();
  operation->group = shared_from_this();
  operation->timeout = timeout > Duration::zero() ? timeout : runtime_->default_timeout();
  operation->started_at = operation->probed_at = now;
  operation->request.deadline = deadline_after(now, operation->timeout);
  earliest_deadline_ = std::min(earliest_deadline_, operation->request.deadline);
  if (operation->is_message()) {
    messages_.add(operation);
  } else {
    collectives_.add(operation);
  }
  runtime_->activate(*this);
}

std::shared_ptr<Operation> GroupCore::start_tracked(CachedCall& shape, const CallTerms& terms, Duration timeout) {
  if (collectives_.empty()) calls_.note_ended(calls_.next());
  static_cast<void>(shape.number(calls_));
  if (!leavers_ahead_.empty()) compare_with_leavers();
  auto operation = make_operation(shape, terms, timeout);
  operation->waits_for_turn = must_wait(collectives_.end() - 1);
  check_unexpected(operation->request.signature);
  if (const auto found = refusals_.find(operation->request.signature.sequence); found != refusals_.end()) {
    const Refusal refusal = std::move(found->second);
    refusals_.erase(found);
    take_refusal(operation->request.signature.sequence, refusal.world_rank, refusal.text);
  }
  if (!operation->ended() && !operation->waits_for_turn && !is_breaking()) launch(*operation);
  return operation;
}

void GroupCore::decline(const std::string& reason) {
  const auto guard = runtime_->lock();
  check_usable();
  refuse(reason);
}

void GroupCore::refuse(const std::string& text) {
  const std::uint64_t sequence = calls_.refuse();
  refusals_.erase(sequence);
  refused_up_to_ = sequence;
  forget_refused();
  if (facts_.size > 1) runtime_->control().refuse(facts_.id, facts_.epoch, sequence, text);
}

void GroupCore::take_refusal(std::uint64_t sequence, int world_rank, std::string_view text) {
  if (sequence < calls_.next()) calls_.take_out(sequence);
  if (Operation* operation = running(sequence)) {
    const std::string message =
        fmt::format("{}: {}: {} refused its part of the call: {}. Nothing was changed there; the group stays usable",
                    who(), call_text(*operation), name_of_rank(rank_of(world_rank)), text);
    refused_up_to_ = std::max(sequence, refused_up_to_.value_or(0));
    end(*operation, std::make_exception_ptr(Aborted(message)));
  } else if (sequence >= calls_.next()) {
    refusals_.try_emplace(sequence, Refusal{world_rank, std::string(text)});
  }
}

// What came for refused calls goes once no earlier call runs: the transport forgets up to a number.
void GroupCore::forget_refused() {
  if (!refused_up_to_) return;
  if (!collectives_.empty() && collectives_.oldest()->request.signature.sequence <= *refused_up_to_) return;
  runtime_->transport().forget(facts_.id, *refused_up_to_);
  refused_up_to_.reset();
}

bool GroupCore::must_wait(std::uint64_t place) const {
  if (place >= collectives_.first() + window) return true;
  const auto clash = [](const View& a, const View& b) { return a.present() && b.present() && overlap(a, b); };
  const Request& mine = collectives_.at(place)->request;
  const Backend& backend = collectives_.at(place)->shape->backend();
  const Backend::Order order = backend.order();
  for (std::uint64_t earlier = collectives_.first(); earlier < place; ++earlier) {
    const Operation* const other = collectives_.at(earlier).get();
    if (other->ended()) continue;
    const Request& theirs = other->request;
    if (&other->shape->backend() == &backend) {
      const bool is_out_of_order = other->waits_for_turn || theirs.sizes_follow;
      if (order == Backend::Order::one_at_a_time || (order == Backend::Order::as_numbered && is_out_of_order))
        return true;
    }
    if (clash(mine.input, theirs.output) || clash(mine.output, theirs.output) || clash(mine.output, theirs.input))
      return true;
  }
  return false;
}

void GroupCore::launch(Operation& operation) {
  operation.waits_for_turn = false;
  guarded(operation, [&] {
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
  });
}

// Once the group is about to break, nothing ends well any more, so that this rank does not go on as if nothing had happened.
void GroupCore::advance() {
  if (!is_breaking() && messages_.has_news()) advance_messages();
  if (!is_breaking() && !collectives_.empty()) advance_collectives();
}

void GroupCore::advance_messages() {
  messages_.take_news(news_);
  for (const auto& operation : news_) {
    if (!operation->ended() && !is_breaking()) advance_message(*operation);
  }
  news_.clear();
}

// Calls end while we walk, which moves the first place; those that come into the window have their turn in the next round, so that
// a round is short.
void GroupCore::advance_collectives() {
  const std::uint64_t end = std::min(collectives_.end(), collectives_.first() + window);
  const bool ask_all = std::exchange(turns_changed_, false);
  const Backend* busy = nullptr;  // it carries out its calls one after the other: none is further than the first
  for (std::uint64_t place = collectives_.first(); place < end && !is_breaking();
       place = std::max(place + 1, collectives_.first())) {
    const std::shared_ptr<Operation> operation = collectives_.at(place);
    if (operation->ended()) continue;
    if (operation->waits_for_turn) {
      if ((ask_all || turns_changed_) && !must_wait(place)) launch(*operation);
    } else if (operation->call && operation->failing.empty() && &operation->shape->backend() != busy) {
      advance_collective(*operation);
      if (!operation->ended() && operation->shape->backend().order() != Backend::Order::any)
        busy = &operation->shape->backend();
    }
  }
}

void GroupCore::advance_collective(Operation& operation) {
  guarded(operation, [&] {
    if (operation.call->poll()) end(operation, nullptr);
  });
}

void GroupCore::went_wrong(Operation& operation, const std::exception_ptr& thrown) {
  const auto abort_for = [&](control::Cause::Kind kind, const std::exception& error) {
    request_abort({.kind = kind,
                   .culprits = {},
                   .sequence = operation.request.signature.sequence,
                   .text = fmt::format("{} failed on rank {}: {}", call_text(operation), facts_.rank, error.what())});
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const TransferFailed& failure) {
    mark_failing(operation, fmt::format("{} with {}", failure.what(), name_of_rank(failure.peer())),
                 facts_.world_of[static_cast<std::size_t>(failure.peer())], failure.does_not_fit());
  } catch (const SignatureDiffers& difference) {
    // It may have shown in the call after the one it was in.
    const Signature* const logged = calls_.find(difference.theirs().sequence);
    report_mismatch(logged != nullptr ? *logged : operation.request.signature, difference.theirs(),
                    facts_.world_of[static_cast<std::size_t>(difference.peer())]);
  } catch (const Mismatch& error) {
    abort_for(control::Cause::Kind::mismatch, error);
  } catch (const std::exception& error) {  // out of memory, or what the caller's own function throws
    abort_for(control::Cause::Kind::aborted, error);
  }
}

// The verdict of the control network is awaited.
void GroupCore::mark_failing(Operation& operation, std::string reason, int world_peer, bool does_not_fit) {
  if (operation.failing.empty()) ++failing_count_;
  // A transport begins with the rank it speaks for, in the world; the report says so in other words.
  const std::string speaker = fmt::format("rank {}: ", facts_.world_of[static_cast<std::size_t>(facts_.rank)]);
  if (reason.starts_with(speaker)) reason.erase(0, speaker.size());
  operation.failing = std::move(reason);
  operation.failing_since = runtime_->clock().now();
  operation.probed_at = TimePoint{};
  operation.failing_peer = world_peer;
  operation.does_not_fit = does_not_fit;
}

// Nobody waits for it any more who could be told.
void GroupCore::say_unfinished(const Operation& operation, const std::exception_ptr& error) const {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& reason) {
    runtime_->log().warn("this process leaves the job, and {} has not ended well: {}", call_text(operation),
                         reason.what());
  }
}

void GroupCore::end(Operation& operation, std::exception_ptr error) {
  if (operation.ended()) return;
  if (!operation.failing.empty()) --failing_count_;
  if (error && runtime_->drains()) say_unfinished(operation, error);
  if (operation.call && !error)
    operation.shape->give_back(std::move(operation.call));  // for the next call of this shape
  const bool is_message = operation.is_message();
  operation.end(std::move(error));
  if (operation.has_callbacks()) runtime_->call_back(operation.shared_from_this());
  runtime_->deactivate();
  if (is_message) return messages_.remove(operation);
  turns_changed_ = true;
  if (collectives_.oldest().get() == &operation) {
    collectives_.drop_ended();
    const std::uint64_t oldest =
        collectives_.empty() ? calls_.next() : collectives_.oldest()->request.signature.sequence;
    stalls_.forget_before(oldest);
    calls_.note_ended(oldest);
  }
  forget_refused();
}

}  // namespace tutti
