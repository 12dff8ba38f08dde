// memory.cpp: blocks for users, and their quarantine.
// SPDX-License-Identifier: Apache-2.0
#include "shm/memory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace tutti::shm {

std::shared_ptr<Memory> Memory::of(std::shared_ptr<Arena> arena) {
  return std::shared_ptr<Memory>(new Memory(std::move(arena)));
}

std::shared_ptr<std::byte> Memory::take(std::size_t bytes, std::size_t alignment) {
  std::vector<Exposure> over;
  const std::lock_guard lock(mutex_);
  collect(over);
  std::byte* block = nullptr;
  try {
    block = arena_->allocate_spare(bytes, alignment);
  } catch (const OutOfMemory& error) {
    if (quarantine_.empty()) throw;
    throw OutOfMemory(error.what() + who_is_awaited());
  }
  held_.emplace(block, Block{.bytes = bytes});
  return {block, [memory = shared_from_this()](std::byte* gone) { memory->give_back(gone); }};
}

bool Memory::expose(const void* data, const std::shared_ptr<const Ledger>& ledger, std::uint64_t seq) {
  if (!arena_->contains(data, 0)) return false;
  auto* const address = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  std::vector<Exposure> over;
  const std::lock_guard lock(mutex_);
  auto found = held_.upper_bound(address);
  if (found == held_.begin()) return false;
  --found;
  Block& block = found->second;
  if (static_cast<std::size_t>(address - found->first) >= std::max<std::size_t>(block.bytes, 1)) return false;
  const auto known = std::ranges::find(block.exposures, ledger, &Exposure::ledger);
  if (known != block.exposures.end()) {
    known->seq = seq;
    return true;
  }
  // Circles come and go, and a long-lived block would remember all of them.
  take_out_done(block, over);
  block.exposures.push_back({.ledger = ledger, .seq = seq});
  return true;
}

void Memory::ended(int world_rank) {
  std::vector<Exposure> over;
  const std::lock_guard lock(mutex_);
  ended_.insert(world_rank);
  collect(over);
}

void Memory::collect() {
  std::vector<Exposure> over;
  const std::lock_guard lock(mutex_);
  collect(over);
}

std::uint64_t Memory::quarantined_bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& [address, block] : quarantine_) bytes += block.bytes;
  return bytes;
}

void Memory::give_back(std::byte* block) {
  // A forked child drops what it inherited; the memory is its parent's, and the lock may be held by a thread it has not.
  if (getpid() != arena_->address().process) return;
  std::vector<Exposure> over;
  const std::lock_guard lock(mutex_);
  quarantine_.insert(held_.extract(block));
  collect(over);
}

// `over` outlives the lock: with its last offer a ledger goes, and with that perhaps another block of this memory.
void Memory::take_out_done(Block& block, std::vector<Exposure>& over) const {
  auto& exposures = block.exposures;
  const auto done =
      std::partition(exposures.begin(), exposures.end(), [&](const Exposure& expose) { return is_awaited(expose); });
  over.insert(over.end(), std::make_move_iterator(done), std::make_move_iterator(exposures.end()));
  exposures.erase(done, exposures.end());
}

void Memory::collect(std::vector<Exposure>& over) {
  for (auto entry = quarantine_.begin(); entry != quarantine_.end();) {
    take_out_done(entry->second, over);
    if (!entry->second.exposures.empty()) {
      ++entry;
      continue;
    }
    arena_->free(entry->first);
    entry = quarantine_.erase(entry);
  }
}

bool Memory::is_awaited(int world_rank, const Exposure& expose) const {
  return !ended_.contains(world_rank) && !expose.ledger->is_done(world_rank, expose.seq);
}

bool Memory::is_awaited(const Exposure& expose) const {
  return std::ranges::any_of(expose.ledger->peers(), [&](int rank) { return is_awaited(rank, expose); });
}

std::string Memory::who_is_awaited() const {
  std::set<int> ranks;
  std::uint64_t bytes = 0;
  for (const auto& [address, block] : quarantine_) {
    bytes += block.bytes;
    for (const Exposure& expose : block.exposures) {
      for (const int rank : expose.ledger->peers()) {
        if (is_awaited(rank, expose)) ranks.insert(rank);
      }
    }
  }
  return fmt::format(" ({} more are free as soon as rank {} is done with them)", format_bytes(std::int64_t(bytes)),
                     fmt::join(ranks, ", "));
}

}  // namespace tutti::shm
