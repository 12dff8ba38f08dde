// cuda_call.hpp: what the calls on arrays of a GPU have in common: a stream, and work on it that is waited for by asking.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tutti/backend.hpp>

#include "backend/block_layout.hpp"
#include "cuda/device.hpp"
#include "cuda/memory.hpp"

namespace tutti {

/// The device of a call's arrays; throws InvalidArgument where they lie on different ones.
int device_of(const Request& request);

/// How the arrays of a call lie for the other ranks: this rank's blocks one after the other, without gaps.
class GpuPacking {
 public:
  GpuPacking(const Request& request, const GroupFacts& facts);
  [[nodiscard]] const BlockLayout& layout() const { return layout_; }
  /// Whether the arrays lie so by themselves.
  [[nodiscard]] bool input_is_packed() const { return input_is_packed_; }
  [[nodiscard]] bool output_is_packed() const { return output_is_packed_; }

  // On the stream, with the device's context current.
  void pack(cuda::Device& device, cuda::Stream stream, const View& input, std::byte* to) const;
  void unpack(cuda::Device& device, cuda::Stream stream, std::byte* from, const View& output) const;

 private:
  BlockLayout layout_;
  bool input_is_packed_ = true, output_is_packed_ = true;
};

/// A stream and an event, taken for as long as a call runs. Nothing here waits for the GPU but abandon().
class GpuWork {
 public:
  explicit GpuWork(cuda::Device& device) : device_(device) {}
  ~GpuWork() { abandon(); }
  GpuWork(const GpuWork&) = delete;
  GpuWork& operator=(const GpuWork&) = delete;

  /// From here on, behind what the caller has said of the arrays. With the context current.
  void begin(const void* input, const void* output);
  [[nodiscard]] cuda::Stream stream() const { return stream_; }
  /// What is on the stream now is to be waited for.
  void mark();
  /// Whether it is over.
  [[nodiscard]] bool is_over() const { return !is_marked_ || cuda::has_happened(event_); }
  void end();
  /// Waits for what is under way, which is finite: no work on a GPU waits for a peer.
  void abandon();

 private:
  cuda::Device& device_;
  cuda::Stream stream_ = nullptr;
  cuda::Event event_ = nullptr;
  bool is_marked_ = false;
};

}  // namespace tutti
