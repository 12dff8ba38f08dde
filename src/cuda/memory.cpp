// memory.cpp: memory that calls take for as long as they run.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/memory.hpp"

#include <algorithm>
#include <bit>

namespace tutti::cuda {
namespace {

constexpr std::size_t smallest = 64 << 10, exact_from = 64 << 20;  // larger ones are not rounded up to a power of two

}  // namespace

Result BlockPool::allocate(std::size_t bytes, Block& block) const {
  const Driver& d = driver();
  block.bytes = bytes;
  if (kind_ == Kind::pinned) {
    void* memory = nullptr;
    const Result result = d.allocate_host(&memory, bytes, host_alloc_portable);
    block.memory = static_cast<std::byte*>(memory);
    return result;
  }
  Address address = 0;
  const Result result = d.allocate(&address, bytes);
  block.memory = reinterpret_cast<std::byte*>(address);  // NOLINT: an address is what the driver gives
  return result;
}

void BlockPool::free(const Block& block) const {
  // The driver may be gone when a process ends; then so is the memory.
  if (kind_ == Kind::pinned) static_cast<void>(driver().free_host(block.memory));
  else static_cast<void>(driver().free(reinterpret_cast<Address>(block.memory)));
}

Block BlockPool::take(Device& device, std::size_t bytes) {
  device_ = &device;
  const auto fits = [&](const Block& block) { return block.bytes >= bytes; };
  const auto found = std::ranges::find_if(idle_, fits);
  if (found != idle_.end()) {
    const Block block = *found;
    idle_.erase(found);
    return block;
  }
  const std::size_t rounded = bytes >= exact_from ? bytes : std::max(smallest, std::bit_ceil(bytes));
  Block block;
  Result result = allocate(rounded, block);
  if (result == out_of_memory && !idle_.empty()) {
    clear();
    result = allocate(rounded, block);
  }
  check(result, kind_ == Kind::pinned ? "cuMemHostAlloc" : "cuMemAlloc");
  return block;
}

void BlockPool::give_back(Block& block) {
  if (block) idle_.push_back(block);
  std::ranges::sort(idle_, {}, &Block::bytes);
  block = {};
}

void BlockPool::clear() {
  if (idle_.empty() || device_ == nullptr) return;
  const Device::Current current(*device_);
  for (const Block& block : idle_) free(block);
  idle_.clear();
}

}  // namespace tutti::cuda
