// ucx_buffers.hpp: memory for frames that UCX may still read after send() has returned.
// SPDX-License-Identifier: Apache-2.0
//
// UCX cannot be told to leave a frame alone that it has begun to send, and a message may be withdrawn at any time: so UCX never sees
// memory of a sender. Frames are copied here, and the buffer comes back when UCX is done with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tutti::link {

struct UcxBuffer {
  std::unique_ptr<std::byte[]> memory{};
  bool is_large = false;
  void* owner = nullptr;   // the peer that the frame goes to
  std::int64_t bytes = 0;  // of the frame in it
};

class UcxBuffers {
 public:
  static constexpr std::size_t small_bytes = 4 << 10;

  explicit UcxBuffers(std::size_t large_bytes) : large_bytes_(large_bytes) {}

  std::unique_ptr<UcxBuffer> take(std::size_t bytes) {
    auto& free = bytes > small_bytes ? large_ : small_;
    if (!free.empty()) {
      auto buffer = std::move(free.back());
      free.pop_back();
      return buffer;
    }
    const bool is_large = bytes > small_bytes;
    auto buffer = std::make_unique<UcxBuffer>();
    buffer->memory = std::make_unique_for_overwrite<std::byte[]>(is_large ? large_bytes_ : small_bytes);
    buffer->is_large = is_large;
    return buffer;
  }
  void give_back(std::unique_ptr<UcxBuffer> buffer) {
    (buffer->is_large ? large_ : small_).push_back(std::move(buffer));
  }

 private:
  std::size_t large_bytes_;
  std::vector<std::unique_ptr<UcxBuffer>> small_, large_;
};

}  // namespace tutti::link
