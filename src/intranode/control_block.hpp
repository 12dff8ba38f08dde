// control_block.hpp: what one member keeps in its memory for a group: flags, a log of signatures, slots.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <tutti/request.hpp>

#include "intranode/flags.hpp"
#include "intranode/transfer_schedule.hpp"
#include "plan/shared_limits.hpp"
#include "shm/atomics.hpp"

namespace tutti::intranode {

struct Native : shm::MachineAtomics {
  static constexpr int inline_slots = 8, slots = 4;
  /// Digests of this execution's signature and of all calls before, so that ranks which disagreed without noticing find out next
  /// time; and the message, if it is short.
  struct InlineHeader {
    std::uint32_t digest = 0;
    std::uint32_t history = 0;
    std::byte payload[inline_bytes];  // 16 bytes after the sequence number
    /// A rank that reads several lines prefetches more: the lines of the next inline slot should not be among them yet, nor too far away.
    std::byte gap[448];
  };
};
static_assert(sizeof(Native::LongWord) == 8 && Native::LongWord::is_always_lock_free);
static_assert(sizeof(Native::LongWord) + offsetof(Native::InlineHeader, gap) == 576, "nine lines");

/// Which execution of which call, and what the call is.
struct Identity {
  SequenceNumber first = 0;
  std::uint64_t turn = 0;
  std::uint32_t phase = 0;
  std::uint32_t digest = 0;
  Signature signature{};
};

/// Of everything but the call's number, which the sequence number tells, and what came before: calls of one kind have the same.
std::uint32_t digest_of(const Signature& signature, std::uint32_t phase);

/// The last executions' signatures in full; the call's number is in the sequence number. Only looked at when digests differ, while its owner may
/// write on: an entry counts if its sequence number is the same before and after.
class SignatureLog {
 public:
  static constexpr std::size_t entry_count = 32;

  void write(const Identity& identity);
  /// What is in that turn's place already, for another call.
  void renumber(std::uint64_t turn, SequenceNumber first) {
    entries_[turn % entry_count].seq.store(first, std::memory_order_release);
  }
  struct Found {
    std::uint32_t phase = 0;
    Signature signature{};
  };
  /// What its owner wrote down for the execution that is `mine` here. Of the history nothing is kept.
  [[nodiscard]] std::optional<Found> read(const Identity& mine) const;
  /// The sequence number of what this owner wrote down in that turn's place.
  [[nodiscard]] SequenceNumber seq_at(std::uint64_t turn) const {
    return entries_[turn % entry_count].seq.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::size_t word_count = sizeof(Signature) / 8 + 1;
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> seq{0};
    std::array<std::atomic<std::uint64_t>, word_count> words{};
  };
  Entry entries_[entry_count];
};

struct ControlBlock {
  Flags<Native> flags;
  SignatureLog log;
  std::atomic<int> departed{0};  // members that are through with the group

  /// Of two members, as many again for those who alternate (steps.hpp).
  [[nodiscard]] static int slot_count(int size) { return size == 2 ? 2 * Native::slots : Native::slots; }
  [[nodiscard]] static std::size_t bytes(const SharedLimits& limits, int size) {
    return slots_begin() + static_cast<std::size_t>(slot_count(size)) * static_cast<std::size_t>(limits.slot_bytes);
  }
  [[nodiscard]] std::byte* slot(int index, const SharedLimits& limits) {
    return reinterpret_cast<std::byte*>(this) + slots_begin() +
           static_cast<std::size_t>(index) * static_cast<std::size_t>(limits.slot_bytes);
  }

 private:
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t slots_begin();
};

// Half a page off where arrays begin: long ones lie at the beginning of a page, nearly always. A load whose address equals that
// of a store in flight in its last 12 bits waits for it, and copies and sums would have that all the time.
constexpr std::size_t ControlBlock::slots_begin() { return (sizeof(ControlBlock) + page - 1) / page * page + page / 2; }

}  // namespace tutti::intranode
