// kernels.hpp: what the host and the kernels of kernels.cu tell each other.
// SPDX-License-Identifier: Apache-2.0
//
// The kernels are compiled by nvcc where it is found, and are part of the library as an image for the driver. They compute what the
// functions of kernel/kernel.hpp compute, to the bit, save for the payload of a NaN.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::cuda {

/// For cuModuleLoadData; null: this build has none.
const void* kernel_image();

/// Combines arrays element by element, in the order of the sources, and writes the result to every destination.
struct Job {
  std::int64_t count = 0;     // elements
  std::uint16_t sources = 0;  // none: zeros
  std::uint16_t destinations = 0;
  std::uint16_t first = 0;       // of its pointers: the sources, then the destinations
  std::uint16_t is_aligned = 0;  // all of them to 16 bytes
};

/// The jobs of one launch. 4096 bytes are what every driver takes as arguments.
struct Batch {
  static constexpr int jobs_max = 32, pointers_max = 400;
  /// What a destination gets: the result of all sources, or that of those up to (or before) the source of its own place.
  static constexpr int everything = 0, up_to_own = 1, before_own = 2;

  double factor = 1;                       // times every source, if is_scaled
  double divisor = 1;                      // of the result, if is_divided
  const unsigned* is_permitted = nullptr;  // zero there: write nothing
  std::uint64_t identity[2] = {0, 0};      // an element's bytes: what comes before the first source
  int mode = everything;
  std::uint8_t is_scaled = 0, is_divided = 0;
  std::uint16_t jobs = 0;
  Job job[jobs_max];
  void* pointer[pointers_max];
};
static_assert(sizeof(Batch) <= 4096);

/// Elements from one strided layout to another: units of 1, 2, 4, 8 or 16 bytes, strides in bytes, outermost axis first.
struct StridedMove {
  static constexpr int axes_max = 16;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::int64_t count = 0;  // units
  int unit = 1;
  int axes = 0;
  std::int64_t extent[axes_max];
  std::int64_t to_stride[axes_max], from_stride[axes_max];
};

/// By which a rank takes back the permission to write to its memory. In memory of the GPU that the ranks of a group map.
struct Mailbox {
  std::uint64_t revoked = 0;  // writes of calls up to this ticket are not permitted any more
  std::uint64_t busy = 0;     // the ticket of the call whose kernel may be writing
};
struct Entrance {
  static constexpr int mailboxes_max = 128;
  std::uint64_t ticket = 0;
  unsigned* is_permitted = nullptr;
  int mailboxes = 0;
  Mailbox* mailbox[mailboxes_max];
};

}  // namespace tutti::cuda
