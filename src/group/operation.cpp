// operation.cpp: one call on a group, from the door to its end.
// SPDX-License-Identifier: Apache-2.0
#include "group/operation.hpp"

#include <cxxabi.h>

#include <utility>

#include <tutti/error.hpp>

#include "group/core.hpp"
#include "messages/message_form.hpp"

namespace tutti {

void Operation::is_over(Transfer&) { group->parts().running.messages().note_news(*this); }

std::byte* Operation::room_for(Transfer& receive) {
  const Envelope& envelope = receive.envelope;
  const MessageShape array = messages::shape_in(envelope, lengths);
  const View view =
      request.allocate(envelope.signature.dtype, std::span(array.lengths).first(static_cast<std::size_t>(array.axes)),
                       messages::kind_in(envelope));
  if (!view.is_contiguous() || view.bytes() != envelope.bytes)
    throw InvalidArgument("the memory that was allocated for the message does not fit it");
  return static_cast<std::byte*>(view.data());
}

void Operation::rethrow() const {
  if (error_) std::rethrow_exception(error_);
}

void Operation::release_resources() {
  if (call) call->cancel();
  call = nullptr;
  shape = nullptr;
  if (transport != nullptr && transfer.state == Transfer::State::pending) transport->cancel(transfer);
  transport = nullptr;
  transfer.watcher = nullptr;
  request.allocate = nullptr;
}

void Operation::end(std::exception_ptr error) {
  release_resources();
  error_ = std::move(error);
  ended_.store(true, std::memory_order_release);
}

bool Operation::then(Callback callback) {
  if (ended()) return false;
  callbacks_.push_back(std::move(callback));
  called_back_.store(false, std::memory_order_release);
  return true;
}

void Operation::run_callbacks(const Log& log) {
  for (const Callback& callback : std::exchange(callbacks_, {})) {
    try {
      callback(error_);
    } catch (const abi::__forced_unwind&) {  // pthread_exit: the thread is to end
      called_back_.store(true, std::memory_order_release);
      throw;
    } catch (const std::exception& thrown) {
      log.error("a function given to Work::then threw: {}", thrown.what());
    } catch (...) {
      log.error("a function given to Work::then threw");
    }
  }
  called_back_.store(true, std::memory_order_release);
}

void Operation::reset() {
  if (!is_message()) request = Request{};  // of a message, GroupMessages::write_down writes all that is used
  error_ = nullptr;
  callbacks_.clear();
  called_back_.store(true, std::memory_order_relaxed);
  waits_for_turn = false;
  record = 0;
  failing.clear();
  failing_peers.clear();
  first_question = 0;
  does_not_fit = false;
  reported = false;
  probe_count = 0;
  site.clear();
  peer = -1;
  takes_any = is_exact = false;
  number = 0;
  transfer.state = Transfer::State::idle;
  transfer.refusal = Transfer::Refusal::none;
  transfer.probes = false;
  transfer.error.clear();
  ended_.store(false, std::memory_order_release);
}

std::shared_ptr<Operation> ended_message(Verb verb, int peer, std::uint32_t tag, const Signature& signature) {
  auto operation = std::make_shared<Operation>();
  operation->request.verb = verb;
  operation->request.signature = signature;
  operation->peer = peer;
  operation->transfer.envelope.tag = tag;
  operation->transfer.envelope.signature.count = signature.count;
  return operation;
}

// Nothing of it ever changes, and it has no owner: copies of this handle count nothing.
std::shared_ptr<Operation> ended_send() {
  static Operation* const send = new Operation();  // outlives every Work, also those in static variables
  return {std::shared_ptr<Operation>(), send};
}

}  // namespace tutti
