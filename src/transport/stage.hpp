// stage.hpp: where a pending transfer is, how it ends, and what an unexpected message costs its sender.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <tutti/transport.hpp>

namespace tutti::transport {

// A message costs its bytes and something for its entry, so that many small ones are bounded too.
inline constexpr std::int64_t message_cost_bytes = 256;
constexpr std::int64_t credit_cost(std::int64_t bytes) { return bytes + message_cost_bytes; }

// What Transfer::handle points at.
enum class Stage : std::uint8_t { sending, announced, to_self, kept_for_self, posted, taken };
inline constexpr Stage stages[] = {Stage::sending,       Stage::announced, Stage::to_self,
                                   Stage::kept_for_self, Stage::posted,    Stage::taken};
inline void set_stage(Transfer& transfer, Stage stage) {
  transfer.handle = const_cast<Stage*>(&stages[static_cast<std::size_t>(stage)]);
}
inline Stage stage_of(const Transfer& transfer) { return *static_cast<const Stage*>(transfer.handle); }

// A transfer ends here and nowhere else, so that whoever watches over it hears of it.
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

}  // namespace tutti::transport
