// alone.cpp: the transport of a world of one: messages to oneself, no socket.
// SPDX-License-Identifier: Apache-2.0
#include "transport/alone.hpp"

#include <algorithm>
#include <cstring>

#include "transport/stage.hpp"

namespace tutti::transport {
namespace {

void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

void AloneTransport::send(Transfer& transfer) {
  finish(transfer);
  if (listener_ != nullptr && listener_->arrived(0, transfer.envelope) == TransportListener::Verdict::drop) return;
  const MatchingQueue::Match match = matching_queue_.match(0, transfer.envelope);
  if (match.fit == MatchingQueue::Fit::taken) {
    copy_bytes(match.receive->to, transfer.from, transfer.envelope.bytes);
    finish(*match.receive);
  } else if (match.fit == MatchingQueue::Fit::none) {
    UnexpectedMessage& unexpected = matching_queue_.keep(0, transfer.envelope);
    copy_bytes(matching_queue_.make_room(unexpected), transfer.from, transfer.envelope.bytes);
  }
}

void AloneTransport::recv(Transfer& transfer) {
  const MatchingQueue::Found found = matching_queue_.post(transfer);
  if (found.fit == MatchingQueue::Fit::none) return;
  if (found.fit == MatchingQueue::Fit::taken) {
    copy_bytes(transfer.to, found.unexpected->payload.get(), transfer.envelope.bytes);
    finish(transfer);
  }
  matching_queue_.recycle(*found.unexpected);
}

void AloneTransport::cancel(Transfer& transfer) {
  if (transfer.state == Transfer::State::pending) matching_queue_.withdraw(transfer);
  transfer.state = Transfer::State::idle;
}

void AloneTransport::give_back(Transfer& receive) {
  if (receive.state == Transfer::State::done) matching_queue_.give_back(receive);
  cancel(receive);
}

void AloneTransport::forget(std::uint64_t group, std::uint64_t up_to_sequence) {
  for (UnexpectedMessage* unexpected = matching_queue_.forget(group, up_to_sequence); unexpected != nullptr;) {
    UnexpectedMessage* next = unexpected->next;
    matching_queue_.recycle(*unexpected);
    unexpected = next;
  }
}

void AloneTransport::wait(TimePoint until, Events) {
  std::unique_lock guard(mutex_);
  woken_.wait_until(guard, std::min(until, clock_.now() + std::chrono::milliseconds(20)));
}

void AloneTransport::wake() { woken_.notify_all(); }

}  // namespace tutti::transport
