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
  const Mailbox::Match match = mailbox_.match(0, transfer.envelope);
  if (match.fit == Mailbox::Fit::taken) {
    copy_bytes(match.receive->to, transfer.from, transfer.envelope.bytes);
    finish(*match.receive);
  } else if (match.fit == Mailbox::Fit::none) {
    Arrival& arrival = mailbox_.keep(0, transfer.envelope);
    copy_bytes(mailbox_.make_room(arrival), transfer.from, transfer.envelope.bytes);
  }
}

void AloneTransport::recv(Transfer& transfer) {
  const Mailbox::Found found = mailbox_.post(transfer);
  if (found.fit == Mailbox::Fit::none) return;
  if (found.fit == Mailbox::Fit::taken) {
    copy_bytes(transfer.to, found.arrival->payload.get(), transfer.envelope.bytes);
    finish(transfer);
  }
  mailbox_.recycle(*found.arrival);
}

void AloneTransport::cancel(Transfer& transfer) {
  if (transfer.state == Transfer::State::pending) mailbox_.withdraw(transfer);
  transfer.state = Transfer::State::idle;
}

void AloneTransport::give_back(Transfer& receive) {
  if (receive.state == Transfer::State::done) mailbox_.give_back(receive);
  cancel(receive);
}

void AloneTransport::forget(std::uint64_t group, std::uint64_t up_to_sequence) {
  for (Arrival* arrival = mailbox_.forget(group, up_to_sequence); arrival != nullptr;) {
    Arrival* next = arrival->next;
    mailbox_.recycle(*arrival);
    arrival = next;
  }
}

void AloneTransport::wait(TimePoint until, Events) {
  std::unique_lock guard(mutex_);
  woken_.wait_until(guard, std::min(until, clock_.now() + std::chrono::milliseconds(20)));
}

void AloneTransport::wake() { woken_.notify_all(); }

}  // namespace tutti::transport
