// failure.cpp: the cause that breaks a group.
// SPDX-License-Identifier: Apache-2.0
#include "group/failure.hpp"

#include <fmt/format.h>

#include <new>
#include <utility>

#include <tutti/error.hpp>

#include "base/printable.hpp"
#include "group/runtime.hpp"

namespace tutti {
namespace {

constexpr Duration agreement_limit =
    std::chrono::seconds(10);  // a group breaks by then, also if no other rank is heard

}  // namespace

void GroupFailure::propose(const control::Cause& cause) {
  if (is_certain()) return;
  proposed_ = cause;
  proposed_at_ = state_.runtime->clock().now();
  running_.stop();
  if (state_.facts.size == 1) {
    break_with(cause);
  } else {
    state_.runtime->control().abort(state_.facts.id, state_.facts.epoch, cause);
  }
}

void GroupFailure::propose_own(std::uint64_t sequence, std::string text) {
  propose({.kind = control::Cause::Kind::aborted,
           .culprits = {state_.world_rank(state_.facts.rank)},
           .sequence = sequence,
           .text = std::move(text)});
}

void GroupFailure::break_with(const control::Cause& cause) {
  if (broken_) return;
  broken_ = cause;
  broken_->text = printable_text(cause.text, "\n\t");  // it may be another rank's, and people will read it
  running_.stop();
  if (record::Recorder* const recorder = state_.records.recorder();
      recorder != nullptr && !state_.runtime->is_leaving())
    recorder->note_error(broken_->text);
  was_told_ = !running_.empty();
  for (const auto& operation : running_.all()) running_.end(*operation, error_for(*broken_, operation.get()));
  state_.runtime->transport().forget(state_.facts.id, ~std::uint64_t{0});
}

void GroupFailure::check_usable() const {
  if (state_.facts.rank < 0) {
    throw InvalidArgument(
        "this process is not a member of the group; only members may call its verbs (see Group::rank())");
  }
  if (!broken_) return;
  was_told_ = true;
  std::rethrow_exception(error_for(*broken_, nullptr));
}

bool GroupFailure::is_agreeing(TimePoint now) {
  if (!proposed_) return false;
  if (now - proposed_at_ > agreement_limit) break_with(*proposed_);
  return true;
}

std::exception_ptr GroupFailure::difference() const {
  using Kind = control::Cause::Kind;
  if (!broken_ || (broken_->kind != Kind::mismatch && broken_->kind != Kind::lost)) return nullptr;
  if (broken_->kind == Kind::lost) {
    const int culprit = broken_->culprits.empty() ? -1 : broken_->culprits.front();
    const bool has_left = culprit >= 0 && state_.runtime->control().loss_of(culprit) == control::Control::Loss::none;
    if (!has_left || broken_->sequence >= state_.calls.next()) return nullptr;  // nor has this rank made that call
  }
  return error_for(*broken_, nullptr);
}

// Most causes begin with the call, which is not repeated then.
std::exception_ptr GroupFailure::error_for(const control::Cause& cause, const Operation* operation) const {
  const std::string who = state_.names.who();
  const std::string call = operation == nullptr ? "the group is broken" : state_.names.call(*operation);
  const bool names_call = operation != nullptr && cause.text.starts_with(call);
  const std::string what =
      names_call ? fmt::format("{}: {}", who, cause.text) : fmt::format("{}: {}: {}", who, call, cause.text);
  switch (cause.kind) {
    case control::Cause::Kind::mismatch: return std::make_exception_ptr(Mismatch(what));
    case control::Cause::Kind::timeout: return std::make_exception_ptr(Timeout(what));
    case control::Cause::Kind::lost: {
      const int rank = cause.culprits.empty() ? -1 : cause.culprits.front();
      return std::make_exception_ptr(PeerLost(what, rank, state_.runtime->host_of(rank), cause.text));
    }
    case control::Cause::Kind::aborted:
    case control::Cause::Kind::refused: break;
  }
  return std::make_exception_ptr(Aborted(what));
}

void GroupFailure::interrupt(Operation& operation) {
  const bool is_withdrawn = operation.is_message() && give_message_back(operation);
  if (operation.ended()) return;
  const std::string text =
      fmt::format("rank {} was interrupted in {}", state_.facts.rank, state_.names.call(operation));
  if (!is_withdrawn) propose_own(operation.request.signature.sequence, text);
  running_.end(operation, std::make_exception_ptr(Aborted(fmt::format("{}: {}", state_.names.who(), text))));
}

void GroupFailure::give_up(Operation& message, std::exception_ptr error) {
  const bool is_kept = give_message_back(message);
  if (message.ended()) return;
  if (!is_kept) {
    propose_own(0, fmt::format("rank {} has no memory for what was arriving when {} ended", state_.facts.rank,
                               state_.names.call(message)));
  }
  running_.end(message, std::move(error));
}

// False if the message that was arriving is lost, for want of memory.
bool GroupFailure::give_message_back(Operation& operation) {
  const Transfer::State state = operation.transfer.state;
  if (operation.transfer.probes && state == Transfer::State::done) {
    state_.runtime->transport().release(operation.transfer);
    return true;
  }
  const bool may_have_one = state == Transfer::State::pending || state == Transfer::State::done;
  if (operation.request.verb != Verb::recv || !may_have_one || broken_) return true;
  try {
    state_.runtime->transport().give_back(operation.transfer);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void GroupFailure::interrupt_all() {
  for (const auto& operation : running_.all()) {
    if (!operation->ended()) interrupt(*operation);
  }
}

void GroupFailure::withdraw_receives() {
  const auto all = running_.messages().all();
  for (const auto& operation : all) {
    if (operation->request.verb != Verb::recv) continue;
    const std::string text =
        fmt::format("{}: the receive was withdrawn: this process leaves the job", state_.names.who());
    running_.end(*operation, std::make_exception_ptr(Aborted(text)));
  }
}

}  // namespace tutti
