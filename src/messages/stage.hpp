// stage.hpp: where a pending transfer is, and how it ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include <tutti/transport.hpp>

namespace tutti::messages {

enum class Stage : std::uint8_t {
  waiting,        // send: for room in the link
  brief_in_link,  // send: a whole message with a brief head, queued there
  full_in_link,   // send: … with a full head
  announced,      // send: an Outbound
  to_self,        // send: for the next poll
  kept_for_self,  // send: for its receive
  posted,         // receive: for its message
  landing,        // receive: a Landing
  inbound,        // receive: an Inbound
  again,          // receive: for the rest of a message that was given back
};

// Transfer::handle points at the stage: at one of these, or at the first member of the object that the transfer is part of.
inline constexpr Stage stages[] = {Stage::waiting, Stage::brief_in_link, Stage::full_in_link, Stage::announced,
                                   Stage::to_self, Stage::kept_for_self, Stage::posted,       Stage::landing,
                                   Stage::inbound, Stage::again};
inline void set_stage(Transfer& transfer, Stage stage) {
  transfer.handle = const_cast<Stage*>(&stages[static_cast<std::size_t>(stage)]);
}
inline Stage stage_of(const Transfer& transfer) { return *static_cast<const Stage*>(transfer.handle); }
template <class Object>
void set_object(Transfer& transfer, Object& object) {
  transfer.handle = &object.stage;
}
template <class Object>
Object& object_of(const Transfer& transfer) {
  static_assert(std::is_standard_layout_v<Object> && offsetof(Object, stage) == 0);
  return *static_cast<Object*>(transfer.handle);
}

// A transfer ends here and nowhere else, so that its watcher hears of it.
inline void tell_watcher(Transfer& transfer) {
  if (transfer.watcher != nullptr) std::exchange(transfer.watcher, nullptr)->is_over(transfer);
}
inline void finish(Transfer& transfer) {
  transfer.state = Transfer::State::done;
  transfer.handle = nullptr;
  tell_watcher(transfer);
}
inline void fail(Transfer& transfer, std::string error) {
  transfer.state = Transfer::State::failed;
  transfer.error = std::move(error);
  transfer.handle = nullptr;
  tell_watcher(transfer);
}

// memcpy wants an address even for no bytes.
inline void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

// Transfers in the order in which they were added, linked through their own `next` and `previous`.
struct TransferList {
  Transfer* first = nullptr;
  Transfer* last = nullptr;

  [[nodiscard]] bool empty() const { return first == nullptr; }
  void add(Transfer& transfer) {
    transfer.next = nullptr;
    transfer.previous = last;
    (last != nullptr ? last->next : first) = &transfer;
    last = &transfer;
  }
  void add_first(Transfer& transfer) {
    transfer.previous = nullptr;
    transfer.next = first;
    (first != nullptr ? first->previous : last) = &transfer;
    first = &transfer;
  }
  void remove(Transfer& transfer) {
    (transfer.previous != nullptr ? transfer.previous->next : first) = transfer.next;
    (transfer.next != nullptr ? transfer.next->previous : last) = transfer.previous;
    transfer.next = transfer.previous = nullptr;
  }
};

}  // namespace tutti::messages
