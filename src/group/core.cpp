// core.cpp: entering, numbering and starting the calls of a group.
// SPDX-License-Identifier: Apache-2.0
#include "group/core.hpp"

#include <fmt/format.h>

#include <utility>

#include <tutti/error.hpp>

#include "group/check.hpp"
#include "group/runtime.hpp"
#include "intranode/intranode_executor.hpp"

namespace tutti {
namespace {

[[noreturn]] void refuse_second_thread(const GroupNames& names, std::string_view what) {
  throw InvalidArgument(
      fmt::format("{}: {} was called while another thread is inside a call on the same group; use one group "
                  "per thread, or one thread at a time",
                  names.who(), what));
}

}  // namespace

GroupCore::GroupCore(std::shared_ptr<Runtime> runtime, GroupFacts facts, const Table& table, GroupBackend backend)
    : parts_(std::move(runtime), std::move(facts), *this),
      table_(&table),
      backend_(std::move(backend)),
      messages_(*this, parts_) {
  use_local_peers(nullptr);
  parts_.state.runtime->directory().add(*this);
}

GroupCore::GroupCore(std::shared_ptr<Runtime> runtime, std::vector<int> world_of)
    : parts_(std::move(runtime), {.rank = -1, .size = static_cast<int>(world_of.size()), .world_of = world_of}, *this),
      messages_(*this, parts_) {}

GroupCore::~GroupCore() {
  if (parts_.state.facts.rank < 0) return;
  parts_.state.runtime->directory().remove(*this);
  parts_.state.prepared.clear();
  backends_ = Backends();
  if (intranode_) parts_.state.runtime->keep(std::move(intranode_));
}

void GroupCore::let_go(const GroupCore* group) {
  if (!group->runtime().is_forked()) delete group;
}

void GroupCore::use_local_peers(std::shared_ptr<IntranodeExecutor> intranode) {
  intranode_ = std::move(intranode);
  if (intranode_ && std::ssize(intranode_->members()) == facts().size) messages_.set_all_local();
  Runtime& runtime = *parts_.state.runtime;
  parts_.state.prepared.clear();
  record::Recorder* const recorder = parts_.state.records.recorder();
  backends_ = Backends({.facts = &parts_.state.facts,
                        .table = table_,
                        .transport = &runtime.transport(),
                        .local_peers = intranode_,
                        .extensions = runtime.parts().backends,
                        .mpi = backend_.mpi ? &backend_.mpi : &runtime.parts().mpi,
                        .trace = recorder == nullptr ? nullptr : recorder->steps(),
                        .asked = backend_.name});
}

void GroupCore::use_backend(GroupBackend backend) {
  backend_ = std::move(backend);
  use_local_peers(std::move(intranode_));
}

GroupCore::Entry::Entry(GroupCore& core, std::string_view what) {
  core.runtime().check_alive();
  const auto guard = core.runtime().lock();
  if (core.inside_.load(std::memory_order_acquire)) refuse_second_thread(core.parts_.state.names, what);
  core.inside_.store(true, std::memory_order_relaxed);
  core_ = &core;
}

// If the lock is held because another thread is inside this group, the call is refused at once. The service thread may hold it, too.
inline std::unique_lock<shm::RankLock> GroupCore::enter(Entry* entry, Verb verb, BlockingHook* hook) {
  Runtime& runtime = *parts_.state.runtime;
  runtime.check_alive();
  auto guard = runtime.lock(std::try_to_lock);
  bool is_second = entry != nullptr && inside_.load(std::memory_order_acquire);
  if (!guard && !is_second) {
    if (hook != nullptr) hook->before_blocking();
    guard.lock();
    is_second = entry != nullptr && inside_.load(std::memory_order_acquire);
  }
  if (is_second) [[unlikely]]
    refuse_second_thread(parts_.state.names, name_of(verb));
  if (entry != nullptr) {
    inside_.store(true, std::memory_order_relaxed);
    entry->core_ = this;
  }
  return guard;
}

std::shared_ptr<CachedCall> GroupCore::check(const CallTerms& terms) {
  Request request = request_in_full(terms);
  check_collective(request, parts_.state.facts.rank, parts_.state.facts.size, layout_);
  std::string refusals;
  Backend& backend = backends_.choose(request, &refusals);
  auto shape = std::make_shared<CachedCall>(terms, std::move(request), backend);
  shape->recorded = parts_.state.records.shape_of(shape->checked());
  const PreparedCall& call = shape->idle();  // what the backend cannot prepare is refused before the call has a number
  if (runtime().parts().log.shows(Log::Level::debug)) log_choice(*this, *shape, call, refusals);
  return shape;
}

CachedCall& GroupCore::admit(const CallTerms& terms) {
  parts_.failure.check_usable();
  if (CachedCall* const known = parts_.state.prepared.find(terms)) return *known;
  try {
    return parts_.state.prepared.add(check(terms), terms);
  } catch (const std::exception& error) {
    parts_.refusals.refuse(error.what());
    throw;
  }
}

// A known shape was compared in everything that distinguishes calls: nothing is left to check.
std::shared_ptr<Operation> GroupCore::run(Entry& entry, const CallTerms& terms, Duration timeout, BlockingHook* hook) {
  auto guard = enter(&entry, terms.verb, hook);
  CachedCall* shape = parts_.state.prepared.find(terms);
  if (shape == nullptr) [[unlikely]]
    shape = &admit(terms);
  if (!parts_.is_undisturbed()) [[unlikely]] {
    parts_.failure.check_usable();
    return start_tracked(*shape, terms, timeout, entry.site);
  }
  PreparedCall& call = shape->idle();
  parts_.state.calls.note_all_ended();
  const Signature& signature = shape->number(parts_.state.calls);
  record::Recorder* const recorder = parts_.state.records.recorder();
  const std::uint64_t record =
      recorder == nullptr ? 0 : recorder->begin(shape->recorded, signature.sequence, entry.site);
  try {
    if (call.start(shape->buffers_of(terms), signature)) [[likely]] {
      if (recorder != nullptr) recorder->end_at_once(record);
      if (shape->recorded.how == 0) [[unlikely]]
        parts_.state.records.name_way(shape->recorded, record, call, shape->backend());
      guard.unlock();  // a full fence
      call.wake_peers();
      return nullptr;
    }
    const RuntimeParts& around = runtime().parts();
    if (shape->backend().is_worth_spinning() &&
        waiting::poll_within_budget(call,
                                    {.clock = *around.clock, .oversubscribed = around.oversubscribed, .hook = hook})) {
      if (recorder != nullptr) recorder->end_waited(record, shape->recorded);
      if (shape->recorded.how == 0) [[unlikely]]
        parts_.state.records.name_way(shape->recorded, record, call, shape->backend());
      return nullptr;
    }
  } catch (...) {
    auto operation = make_operation(*shape, terms, timeout, record);
    operation->call = shape->take();
    went_wrong(*operation, std::current_exception());
    return operation;
  }
  if (recorder != nullptr) recorder->note_polled(record, shape->recorded);
  auto operation = make_operation(*shape, terms, timeout, record);
  operation->call = shape->take();
  return operation;
}

std::shared_ptr<Operation> GroupCore::start(Entry& entry, const CallTerms& terms, Duration timeout) {
  const auto guard = enter(&entry, terms.verb, nullptr);
  auto operation = start_tracked(admit(terms), terms, timeout, entry.site);
  runtime().see_to(operation.get());
  return operation;
}

std::shared_ptr<CachedCall> GroupCore::prepare(const CallTerms& terms) {
  runtime().check_alive();
  const auto guard = runtime().lock();
  parts_.failure.check_usable();
  if (CachedCall* const known = parts_.state.prepared.find(terms)) return known->shared_from_this();
  return parts_.state.prepared.add(check(terms), terms).shared_from_this();
}

std::shared_ptr<Operation> GroupCore::start(Entry& entry, CachedCall& shape, const CallTerms& terms, Duration timeout) {
  const auto guard = enter(&entry, terms.verb, nullptr);
  parts_.failure.check_usable();
  if (!shape.matches(terms)) {
    const std::string text = fmt::format(
        "{}: the arrays differ from those that the call was prepared with in shape, strides, dtype, or in how input "
        "and output lie to each other; prepare another call for them",
        name_of(terms.verb));
    parts_.refusals.refuse(text);
    throw InvalidArgument(text);
  }
  auto operation = start_tracked(shape, terms, timeout, entry.site);
  runtime().see_to(operation.get());
  return operation;
}

std::shared_ptr<Operation> GroupCore::make_operation(CachedCall& shape, const CallTerms& terms, Duration timeout,
                                                     std::uint64_t record) {
  auto operation = parts_.running.take();
  operation->request = shape.request_of(terms);
  operation->shape = shape.shared_from_this();
  parts_.running.note_record(*operation, record, shape.recorded);
  parts_.running.track(operation, shared_from_this(), timeout);
  return operation;
}

std::shared_ptr<Operation> GroupCore::start_tracked(CachedCall& shape, const CallTerms& terms, Duration timeout,
                                                    std::uint32_t site) {
  const CallQueue& collectives = parts_.running.collectives();
  if (collectives.empty()) parts_.state.calls.note_all_ended();
  const std::uint64_t sequence = shape.number(parts_.state.calls).sequence;
  record::Recorder* const recorder = parts_.state.records.recorder();
  auto operation =
      make_operation(shape, terms, timeout, recorder == nullptr ? 0 : recorder->begin(shape.recorded, sequence, site));
  operation->waits_for_turn = parts_.running.must_wait(collectives.end() - 1);
  parts_.agreement.compare_new_call(operation->request.signature);
  parts_.refusals.apply_to(*operation);
  if (!operation->ended() && !operation->waits_for_turn && !parts_.running.is_stopped())
    parts_.running.launch(*operation);
  return operation;
}

std::shared_ptr<Operation> GroupCore::start_message(Entry* entry, const Message& message) {
  const auto guard = enter(entry, message.verb, message.hook);
  messages_.check(message);
  if (message.peer == nobody) [[unlikely]]
    return message.verb == Verb::send ? nullptr : ended_message(Verb::recv, nobody, any_tag);
  auto operation = messages_.launch(message);
  if (operation) runtime().see_to(operation.get());
  return operation;
}

std::shared_ptr<Operation> GroupCore::run_message(Entry* entry, const Message& message, Received& received) {
  using Waiting = GroupMessages::Waiting;
  const auto guard = enter(entry, message.verb, message.hook);
  messages_.check(message);
  received = {};
  if (message.peer == nobody) [[unlikely]]
    return nullptr;
  return messages_.run(message, received, parts_.is_undisturbed() ? Waiting::within_spin_budget : Waiting::not_at_all);
}

std::shared_ptr<Operation> GroupCore::look_for_message(const Message& probe) {
  const auto guard = runtime().lock();
  messages_.check(probe);
  if (probe.peer == nobody) return nullptr;
  runtime().poll();
  parts_.failure.check_usable();
  return messages_.look(probe);
}

void GroupCore::release_message(Operation& probe) {
  if (runtime().is_forked()) return;
  const auto guard = runtime().lock();
  runtime().transport().release(probe.transfer);
}

bool GroupCore::cancel_message(Operation& operation) {
  if (runtime().is_forked()) return false;
  const auto guard = runtime().lock();
  return messages_.cancel(operation);
}

// What is sent at once need not wait for what is received. Otherwise both are under way before anyone waits.
GroupCore::Exchange GroupCore::run_exchange(const Message* sent, const Message* received) {
  using Waiting = GroupMessages::Waiting;
  const auto guard = runtime().lock();
  for (const Message* message : {sent, received}) {
    if (message != nullptr) messages_.check(*message);
  }
  Exchange left;
  Received unused;
  if (sent != nullptr && sent->peer != nobody) left.sending = messages_.run(*sent, unused, Waiting::not_at_all);
  if (received == nullptr || received->peer == nobody) return left;
  const bool waits = !left.sending && parts_.is_undisturbed();
  left.receiving = messages_.run(*received, left.received, waits ? Waiting::within_spin_budget : Waiting::not_at_all);
  return left;
}

void GroupCore::abort(std::string_view reason) {
  const auto guard = runtime().lock();
  parts_.failure.check_usable();
  parts_.failure.propose_own(parts_.state.calls.next(),
                             fmt::format("rank {} aborted the group: {}", facts().rank, reason));
}

void GroupCore::interrupt(Operation& operation) {
  if (runtime().is_forked()) return;
  const auto guard = runtime().lock();
  parts_.failure.interrupt(operation);
}

void GroupCore::decline(const std::string& reason) {
  const auto guard = runtime().lock();
  parts_.failure.check_usable();
  parts_.refusals.refuse(reason);
}

void GroupCore::advance() {
  if (!parts_.running.is_stopped()) messages_.advance();
  if (!parts_.running.is_stopped() && !parts_.running.collectives().empty()) parts_.running.advance_collectives();
}

void GroupCore::look_after(TimePoint now) {
  if (!parts_.failure.is_agreeing(now) && !parts_.agreement.settle(now)) parts_.stall_watch.look(now);
}

void GroupCore::went_wrong(Operation& operation, const std::exception_ptr& thrown) {
  const Signature& own = operation.request.signature;
  const auto propose = [&](control::Cause::Kind kind, const std::exception& error) {
    parts_.failure.propose({.kind = kind,
                            .culprits = {},
                            .sequence = own.sequence,
                            .text = fmt::format("{} failed on rank {}: {}", parts_.state.names.call(operation),
                                                facts().rank, error.what())});
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const TransferFailed& failure) {
    parts_.running.mark_failing(
        operation, {.reason = fmt::format("{} with {}", failure.what(), parts_.state.names.rank(failure.peer())),
                    .world_peers = {parts_.state.world_rank(failure.peer())},
                    .does_not_fit = failure.does_not_fit()});
  } catch (const CommunicationFailed& failure) {
    std::vector<int> others = facts().world_of;
    std::erase(others, parts_.state.world_rank(facts().rank));
    parts_.running.mark_failing(operation, {.reason = failure.what(), .world_peers = std::move(others)});
  } catch (const SignatureDiffers& difference) {
    // It may have shown in the call after the one it was in.
    const Signature* const logged = parts_.state.calls.find(difference.theirs().sequence);
    parts_.agreement.report_mismatch(logged != nullptr ? *logged : own, difference.theirs(),
                                     parts_.state.world_rank(difference.peer()));
  } catch (const Mismatch& error) {
    propose(control::Cause::Kind::mismatch, error);
  } catch (const std::exception& error) {  // out of memory, or what the caller's own function throws
    propose(control::Cause::Kind::aborted, error);
  }
}

}  // namespace tutti
