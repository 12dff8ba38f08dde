// quick.cpp: a blocking call that is over before anyone would have to sleep.
// SPDX-License-Identifier: Apache-2.0
//
// Between local peers a small call takes less time than it takes to write it into the lists by which deadlines, stalls and
// failures are watched. So it is tried first without them, under the runtime's lock and for a moment only; whatever is not
// over by then, or goes wrong, becomes an operation like any other.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "group/core.hpp"
#include "group/runtime.hpp"
#include "group/waiting.hpp"

namespace tutti {
namespace {

/// A message under way.
struct Passing {
  Transport& transport;
  const Transfer& awaited;
  int spins;

  bool poll() {
    for (int i = 0; i < spins && awaited.state == Transfer::State::pending; ++i) transport.poll();
    return awaited.state != Transfer::State::pending;
  }
};

}  // namespace

// A thread that finds the lock held is told at once if another thread is inside this group. The service thread may hold it, too.
inline std::unique_lock<shm::RankLock> GroupCore::enter(Entry* entry, Verb verb, BlockingHook* hook) {
  runtime_->check_alive();
  const auto reject_second = [&] {
    if (entry != nullptr && has_thread_inside()) refuse_second_thread(name_of(verb));
  };
  auto guard = runtime_->try_lock();
  if (!guard) {
    reject_second();
    if (hook != nullptr) hook->before_blocking();
    guard.lock();
  }
  reject_second();
  if (entry != nullptr) entry->enter(*this);
  return guard;
}

inline waiting::Spinning GroupCore::spinning(BlockingHook* hook) const {
  return {.clock = runtime_->clock(), .oversubscribed = runtime_->is_oversubscribed(), .hook = hook};
}

inline bool GroupCore::is_undisturbed() const {
  return !broken_ && !has_work() && unexpected_signatures_.empty() && refusals_.empty() && !proposed_ && !difference_ &&
         leavers_ahead_.empty();
}

// Everything that tells this call from one before is compared; so nothing is left to check.
std::shared_ptr<Operation> GroupCore::run(Entry& entry, const CallTerms& terms, Duration timeout, BlockingHook* hook) {
  auto guard = enter(&entry, terms.verb, hook);
  CachedCall* shape = prepared_.find(terms);
  if (shape == nullptr) [[unlikely]]
    shape = &admit(terms);
  if (!is_undisturbed()) [[unlikely]] {
    check_usable();
    return start_tracked(*shape, terms, timeout);
  }
  PreparedCall& call = shape->idle();
  calls_.note_ended(calls_.next());
  const Signature& signature = shape->number(calls_);
  std::exception_ptr error;
  try {
    if (call.start(shape->buffers_of(terms), signature)) [[likely]] {
      guard.unlock();  // a full fence
      call.wake_peers();
      return nullptr;
    }
    if (shape->backend().is_worth_spinning() && waiting::poll_within_budget(call, spinning(hook))) return nullptr;
  } catch (...) {
    error = std::current_exception();
  }
  return promote(*shape, terms, timeout, error);
}

std::shared_ptr<Operation> GroupCore::start(Entry& entry, const CallTerms& terms, Duration timeout) {
  const auto guard = enter(&entry, terms.verb, nullptr);
  return start_tracked(admit(terms), terms, timeout);
}

std::shared_ptr<Operation> GroupCore::start(Entry& entry, CachedCall& shape, const CallTerms& terms, Duration timeout) {
  const auto guard = enter(&entry, terms.verb, nullptr);
  check_usable();
  if (!shape.matches(terms)) {
    const std::string text = fmt::format(
        "{}: the arrays differ from those that the call was prepared with in shape, strides, dtype, or in how input "
        "and output lie "
        "to each other; prepare another call for them",
        name_of(terms.verb));
    refuse(text);
    throw InvalidArgument(text);
  }
  return start_tracked(shape, terms, timeout);
}

std::shared_ptr<Operation> GroupCore::promote(CachedCall& shape, const CallTerms& terms, Duration timeout,
                                              const std::exception_ptr& error) {
  auto operation = make_operation(shape, terms, timeout);
  operation->call = shape.take();
  if (error) went_wrong(*operation, error);
  return operation;
}

bool GroupCore::is_over(const Transfer& transfer, const Message& message) const {
  if (transfer.state != Transfer::State::done) return false;
  const Signature& sent = transfer.envelope.signature;  // of a send: its own
  return sent.dtype == message.data.dtype() && sent.count == message.data.count() && sent.flags == flags_of(message);
}

std::shared_ptr<Operation> GroupCore::run_message(Entry* entry, const Message& message, int& source) {
  const auto guard = enter(entry, message.verb, message.hook);
  check_message_here(message);
  return try_message(message, source, Waiting::within_spin_budget);
}

// What is sent at once need not wait for what is received. Otherwise both are under way before anyone waits.
GroupCore::Exchange GroupCore::run_exchange(const Message* sent, const Message* received) {
  const auto guard = runtime_->lock();
  for (const Message* message : {sent, received}) {
    if (message != nullptr) check_message_here(*message);
  }
  Exchange left;
  int source = 0;
  if (sent != nullptr) left.sending = try_message(*sent, source, Waiting::not_at_all);
  if (received == nullptr) return left;
  left.receiving = try_message(*received, source, left.sending ? Waiting::not_at_all : Waiting::within_spin_budget);
  return left;
}

// The transport keeps messages in order, tracked or not.
std::shared_ptr<Operation> GroupCore::try_message(const Message& message, int& source, Waiting waiting) {
  if (!all_are_local_ || is_breaking() || !message.data.is_contiguous()) {
    return launch_message(message);
  }
  if (!message_) message_ = take_operation();
  Transfer& transfer = message_->transfer;
  address(transfer, message, static_cast<std::byte*>(message.data.data()));
  const bool oversubscribed = runtime_->is_oversubscribed();
  const bool waits = waiting == Waiting::within_spin_budget && is_undisturbed();
  if (message.verb == Verb::send || !waits ||
      !runtime_->transport().try_recv(transfer, oversubscribed ? 1 : waiting::spins_at_once)) {
    hand_over(transfer, message.verb);
    if (transfer.state == Transfer::State::pending && waits) {
      Passing passing{runtime_->transport(), transfer, oversubscribed ? 1 : waiting::spins_for_a_message};
      static_cast<void>(waiting::poll_within_budget(passing, spinning(message.hook)));
    }
  }
  if (is_over(transfer, message)) [[likely]] {
    source = message.peer == any_source ? rank_of(transfer.peer) : message.peer;
    return nullptr;
  }
  auto operation = std::exchange(message_, nullptr);
  write_down(*operation, message);
  return follow(std::move(operation), message.timeout);
}

}  // namespace tutti
