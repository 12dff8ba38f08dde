// memory.hpp: memory that calls take for as long as they run: on the GPU, or on the host and pinned.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "cuda/device.hpp"

namespace tutti::cuda {

struct Block {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  [[nodiscard]] explicit operator bool() const { return memory != nullptr; }
};

/// Blocks of one kind, kept for the next call. Under the progress lock.
class BlockPool {
 public:
  enum class Kind { pinned, device };
  explicit BlockPool(Kind kind) : kind_(kind) {}
  ~BlockPool() { clear(); }
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// At least so many bytes. Throws Error where there are none, after giving back what is kept.
  Block take(Device& device, std::size_t bytes);
  void give_back(Block& block);
  /// Nothing of it is in use.
  void clear();

 private:
  [[nodiscard]] Result allocate(std::size_t bytes, Block& block) const;
  void free(const Block& block) const;

  Kind kind_;
  Device* device_ = nullptr;
  std::vector<Block> idle_;
};

}  // namespace tutti::cuda
