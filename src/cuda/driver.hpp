// driver.hpp: CUDA's driver, opened at run time: nothing links CUDA, and its headers are not needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::cuda {

// As cuda.h has them. Its interface is stable: names with _v2 stay what they are.
using Result = int;
using DeviceNumber = int;
using Address = unsigned long long;
using Context = void*;
using Stream = void*;  // null: the default stream
using Event = void*;
using Module = void*;
using Function = void*;
struct MemoryHandle {
  std::array<std::byte, 64> bytes;
};
struct Uuid {
  std::array<std::byte, 16> bytes;
  friend bool operator==(const Uuid&, const Uuid&) = default;
};

inline constexpr Result success = 0, out_of_memory = 2, not_ready = 600;
inline constexpr unsigned event_disable_timing = 2, stream_non_blocking = 1, host_alloc_portable = 1;
inline constexpr unsigned ipc_lazy_peer_access = 1;
// Of cuPointerGetAttribute.
inline constexpr int attribute_device_pointer = 3, attribute_buffer_id = 7, attribute_device_ordinal = 9,
                     attribute_is_ipc_capable = 10, attribute_range_start = 11;
// Of cuDeviceGetAttribute.
inline constexpr int attribute_multiprocessors = 16;

/// The functions that are used, by the names that the library has them under.
struct Driver {
  Result (*init)(unsigned flags);
  Result (*version)(int* version);
  Result (*error_name)(Result, const char** name);
  Result (*error_text)(Result, const char** text);
  Result (*device_count)(int* count);
  Result (*device_get)(DeviceNumber*, int ordinal);
  Result (*device_name)(char* name, int length, DeviceNumber);
  Result (*device_uuid)(Uuid*, DeviceNumber);
  Result (*device_attribute)(int* value, int attribute, DeviceNumber);
  Result (*retain_context)(Context*, DeviceNumber);
  Result (*push_context)(Context);
  Result (*pop_context)(Context*);
  Result (*allocate)(Address*, std::size_t bytes);
  Result (*free)(Address);
  Result (*allocate_host)(void**, std::size_t bytes, unsigned flags);
  Result (*free_host)(void*);
  Result (*copy)(Address to, Address from, std::size_t bytes, Stream);
  Result (*fill)(Address to, unsigned char value, std::size_t bytes, Stream);
  Result (*pointer_attribute)(void* value, int attribute, Address);
  Result (*create_stream)(Stream*, unsigned flags);
  Result (*is_capturing)(Stream, int* status);
  Result (*stream_wait)(Stream, Event, unsigned flags);
  Result (*stream_query)(Stream);
  Result (*create_event)(Event*, unsigned flags);
  Result (*destroy_event)(Event);
  Result (*record)(Event, Stream);
  Result (*query)(Event);
  Result (*synchronize)(Event);
  Result (*ipc_export)(MemoryHandle*, Address);
  Result (*ipc_open)(Address*, MemoryHandle, unsigned flags);
  Result (*ipc_close)(Address);
  Result (*load_module)(Module*, const void* image);
  Result (*get_function)(Function*, Module, const char* name);
  Result (*launch)(Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared_bytes, Stream, void** parameters, void** extra);
};

struct FoundDriver {
  const Driver* driver = nullptr;  // null: there is none, or it finds no GPU
  std::string problem;             // why
  std::string file;                // what was opened
  int version = 0;                 // 13000: CUDA 13.0
  int device_count = 0;
};

/// Looked for once, and initialised. TUTTI_CUDA_LIBRARY names another file than libcuda.so.1; "none" has no GPU used.
const FoundDriver& find_driver();
/// Throws Unsupported with the reason where there is none.
const Driver& driver();

/// "out of memory": what the driver says.
std::string describe(const Driver& driver, Result result);
/// Throws Error where the result is not success.
void check(Result result, std::string_view what);

}  // namespace tutti::cuda
