// handle_table.hpp: objects that another rank knows by number, found again only while they live.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace tutti::messages {

// A number holds the slot and how often the slot was used before: a number of a former use finds nothing. Slots are
// reused, so that a steady flow of messages allocates nothing.
template <class T>
class HandleTable {
 public:
  std::uint64_t add(T value) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    Slot& slot = slots_[index];
    slot.value = std::move(value);
    slot.used = true;
    return std::uint64_t{slot.generation} << 32 | index;
  }

  [[nodiscard]] T* find(std::uint64_t number) {
    const auto index = static_cast<std::uint32_t>(number);
    if (index >= slots_.size()) return nullptr;
    Slot& slot = slots_[index];
    return slot.used && slot.generation == number >> 32 ? &slot.value : nullptr;
  }

  void remove(std::uint64_t number) {
    Slot& slot = slots_[static_cast<std::uint32_t>(number)];
    slot = Slot{.value = T{}, .generation = slot.generation + 1, .used = false};
    free_.push_back(static_cast<std::uint32_t>(number));
  }

  [[nodiscard]] std::size_t count() const { return slots_.size() - free_.size(); }

  // Calls visit(number, value) for each; it may remove the one it is called with.
  template <class Visit>
  void for_each(Visit visit) {
    for (std::uint32_t index = 0; index < slots_.size(); ++index) {
      Slot& slot = slots_[index];
      if (slot.used) visit(std::uint64_t{slot.generation} << 32 | index, slot.value);
    }
  }

 private:
  struct Slot {
    T value{};
    std::uint32_t generation = 1;
    bool used = false;
  };
  std::deque<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace tutti::messages
