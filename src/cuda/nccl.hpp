// nccl.hpp: NCCL, opened at run time: nothing links it, and its header is not needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "cuda/driver.hpp"

namespace tutti::nccl {

// As nccl.h has them since 2.18. NCCL adds to its interface and does not change it.
using Result = int;
using Communicator = void*;
struct UniqueId {
  std::array<char, 128> bytes{};
};

inline constexpr Result success = 0, system_error = 2, internal_error = 3, remote_error = 6, in_progress = 7;
/// What NCCL says, on the other ranks, of a process that has ended.
constexpr bool may_be_a_peer(Result result) {
  return result == system_error || result == internal_error || result == remote_error;
}

enum class DataType : int {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
};

/// ncclRedOp_t; from 5 on they are those that were made for a communicator.
using Reduction = int;
inline constexpr Reduction sum = 0, product = 1, max = 2, min = 3, average = 4;
/// ncclScalarHostImmediate: the factor is read before the function returns.
inline constexpr int scalar_on_host = 1;

/// ncclConfig_t as 2.18 has it. A newer library takes its own defaults for what comes after `split_share`.
struct Config {
  static constexpr int undefined = INT_MIN;
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = undefined;
  int cga_cluster_size = undefined;
  int ctas_min = undefined, ctas_max = undefined;
  const char* net_name = nullptr;
  int split_share = undefined;
  int padding = undefined;  // where newer ones have the next member
};
static_assert(sizeof(Config) == 48);

/// The functions that are used, by the names that the library has them under.
struct Functions {
  Result (*version)(int* version);
  Result (*unique_id)(UniqueId*);
  const char* (*error_text)(Result);
  const char* (*last_error)(Communicator);
  Result (*init)(Communicator*, int size, UniqueId, int rank, Config*);
  Result (*abort)(Communicator);
  Result (*async_error)(Communicator, Result*);
  Result (*premul_sum)(Reduction*, void* factor, DataType, int residence, Communicator);
  Result (*destroy_reduction)(Reduction, Communicator);
  Result (*group_start)();
  Result (*group_end)();
  Result (*all_reduce)(const void* from, void* to, std::size_t count, DataType, Reduction, Communicator, cuda::Stream);
  Result (*reduce)(const void* from, void* to, std::size_t count, DataType, Reduction, int root, Communicator,
                   cuda::Stream);
  Result (*reduce_scatter)(const void* from, void* to, std::size_t block, DataType, Reduction, Communicator,
                           cuda::Stream);
  Result (*broadcast)(const void* from, void* to, std::size_t count, DataType, int root, Communicator, cuda::Stream);
  Result (*all_gather)(const void* from, void* to, std::size_t block, DataType, Communicator, cuda::Stream);
  Result (*send)(const void* from, std::size_t count, DataType, int peer, Communicator, cuda::Stream);
  Result (*recv)(void* to, std::size_t count, DataType, int peer, Communicator, cuda::Stream);
};

inline constexpr int oldest_version = 21800;

struct Found {
  const Functions* functions = nullptr;  // null: there is none that can be used
  std::string problem{};                 // why
  std::string file{};                    // what was opened
  int version = 0;                       // 22809: NCCL 2.28.9
};

/// Opens the library that TUTTI_NCCL_LIBRARY names ("none": none is to be used); otherwise the one that the program has loaded, the
/// system's, or one that a Python environment has by the package nvidia-nccl-cu12 or -cu13. It is never closed.
Found open(const Environment& environment);
/// The library of this process, looked for once.
const Found& find();

/// "2.28.9"
std::string version_text(int version);

/// Files of Python's packages that may be NCCL, for a program that is `executable` and code that lies in `folder`.
std::vector<std::string> packaged_files(const std::string& executable, const std::string& folder,
                                        const Environment& environment);

/// "unhandled cuda error (…): the last thing that NCCL said"
std::string describe(const Functions& functions, Result result, Communicator communicator);

}  // namespace tutti::nccl
