// staging.hpp: how a collective's arrays get into and out of the contiguous buffers that executors work on.
// SPDX-License-Identifier: Apache-2.0
//
// Arrays that are contiguous are used where they lie. An input is *staged* (copied into a buffer) when it is strided, must be
// multiplied first (premul), or is widened. An output is staged when it is strided or widened.
#pragma once

#include <cstddef>

#include <tutti/request.hpp>

#include "backend/block_layout.hpp"
#include "engine/aligned_buffer.hpp"

namespace tutti {

class Staging {
 public:
  explicit Staging(BufferPool& pool) : pool_(pool) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging() { give_back(); }

  /// The arrays of the next collective. All outlive it.
  struct Job {
    const Request* request = nullptr;
    const BlockLayout* layout = nullptr;
    DType wire = DType::uint8;
  };
  [[nodiscard]] static bool is_input_direct(const Job& job);
  [[nodiscard]] static bool is_output_direct(const Job& job);

  /// What the executor reads and writes. Null where this rank has no such array.
  const std::byte* take_input(const Job& job);
  std::byte* place_output(const Job& job, const std::byte* input);
  /// The executor has written the output.
  void deliver(const Job& job);
  /// The buffers go back to the pool.
  void give_back();

 private:
  BufferPool& pool_;
  AlignedBuffer input_, output_, narrow_;
  std::byte* staged_output_ = nullptr;  // where the executor writes, if not in the caller's array
};

}  // namespace tutti
