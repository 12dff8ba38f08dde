// cuda_sharing.hpp: memory of a GPU that the processes of a host map, and the mailbox by which one takes back what it has lent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cuda/device.hpp"
#include "cuda/kernels.hpp"

namespace tutti {

/// Where memory lies, for another process: an allocation, and a place in it.
struct GpuPlace {
  cuda::MemoryHandle handle{};
  std::uint64_t base = 0;    // of the allocation, in its own process
  std::uint64_t buffer = 0;  // a number that no other allocation of its process ever has
  std::uint64_t offset = 0;
  std::uint64_t is_present = 0;
};

/// What every rank tells of itself and its arrays at the beginning of a call.
struct GpuRecord {
  std::uint64_t process = 0;    // random
  std::uint64_t can_share = 0;  // its memory can be mapped, and it has kernels
  std::uint64_t device_index = 0;
  cuda::Uuid gpu{};
  GpuPlace input{}, output{}, mailbox{};
};

class CudaSharing {
 public:
  CudaSharing() = default;
  ~CudaSharing();
  CudaSharing(const CudaSharing&) = delete;
  CudaSharing& operator=(const CudaSharing&) = delete;

  /// This process, among all of the job.
  static std::uint64_t process();

  // With the device's context current.
  /// Where the memory is, for others; nothing if they cannot map it: memory of pools (cudaMallocAsync, expandable segments).
  std::optional<GpuPlace> place_of(const void* memory);
  /// The memory at a place of that process. Throws Error if it cannot be mapped.
  std::byte* map(std::uint64_t process, const GpuPlace& place);
  /// Of this rank. Made when it is first asked for.
  cuda::Mailbox* mailbox(cuda::Device& device);
  /// Calls of this rank up to the ticket may not be written for any more; returns when no kernel does.
  void revoke(std::uint64_t ticket);

 private:
  struct Mapped {
    std::uint64_t process, base, buffer;
    cuda::Address address;
  };
  struct Exported {
    std::uint64_t buffer, base;
    cuda::MemoryHandle handle;
  };
  void close(const Mapped& mapped) const;

  cuda::Device* device_ = nullptr;
  cuda::Mailbox* mailbox_ = nullptr;
  std::vector<Mapped> mapped_;
  std::vector<Exported> exported_;
};

}  // namespace tutti
