// cells.cpp: blocks of shared memory in which payloads travel from rank to rank.
// SPDX-License-Identifier: Apache-2.0
#include "link/cells.hpp"

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "base/bytes.hpp"
#include "link/ring_memory.hpp"

namespace tutti::link {

// Without memory for them there are none, and payloads go through the rings.
void Cells::lay_out() {
  laid_out_ = true;
  if (own_count_ == 0) return;
  shm::Arena& arena = local_peers_->arena();
  std::byte* memory = nullptr;
  try {
    memory = arena.allocate_spare(own_count_ * bytes_, 4096);
  } catch (const shm::OutOfMemory&) {
    return;
  }
  own_offset_ = arena.offset_of(memory);
  for (std::size_t i = own_count_; i-- > 0;) {
    const CellName name{.owner = static_cast<std::uint32_t>(local_peers_->rank()),
                        .index = static_cast<std::uint32_t>(i)};
    held_.push_back({.name = name, .memory = memory + i * bytes_});
  }
  // A rank that reads of one of them, from whomever, sees this.
  for (const Controls& controls : controls_) {
    if (controls.ours != nullptr) controls.ours->cells_offset.store(own_offset_, std::memory_order_release);
  }
}

Cells::Cell Cells::named(const CellName& name) const {
  const auto reject = [&] {
    throw MalformedMessage(
        fmt::format("a record in shared memory names cell {} of rank {} with {} bytes, which cannot be", name.index,
                    name.owner, name.payload_bytes));
  };
  if (name.owner >= controls_.size() || name.index >= own_count_ || name.payload_bytes > bytes_) reject();
  const auto owner = static_cast<int>(name.owner);
  std::uint64_t offset = own_offset_;
  if (owner != local_peers_->rank()) {
    const RingControl* const theirs = controls_[name.owner].theirs;
    if (theirs == nullptr) reject();
    offset = theirs->cells_offset.load(std::memory_order_acquire);
  }
  if (offset == 0 || offset % 64 != 0) reject();
  static_cast<void>(in_arena(*local_peers_, owner, offset, own_count_ * bytes_));
  return {.name = name, .memory = local_peers_->at(owner, offset + name.index * bytes_, bytes_)};
}

}  // namespace tutti::link
