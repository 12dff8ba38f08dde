// nccl_steps.hpp: which calls NCCL can serve, and what it is asked to do in them: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tutti/request.hpp>

#include "cuda/nccl.hpp"
#include "engine/executor.hpp"

namespace tutti {

/// Why NCCL cannot serve the call with the results that Tutti promises; nothing if it can. The same on all ranks.
std::optional<std::string> nccl_refusal(const Request& request, int size);

/// How NCCL counts the elements of a call that it serves, and what it combines them by.
struct NcclElement {
  nccl::DataType type = nccl::DataType::uint8;
  std::int64_t per_element = 1;  // of NCCL's, in an element of the call
  nccl::Reduction reduction = nccl::sum;
  bool is_scaled = false;  // by the op's factor, which takes a reduction of its own
};
NcclElement nccl_element(const ExecutionSpec& what);

/// One thing to do. Offsets and counts are elements of the call.
struct NcclStep {
  enum class Kind : std::uint8_t {
    all_reduce,
    reduce,
    reduce_scatter,
    broadcast,
    all_gather,
    send,
    recv,
    copy,  // within this rank
    zero,
  };
  Kind kind = Kind::copy;
  std::int64_t from = 0;  // in the input
  std::int64_t to = 0;    // in the output
  std::int64_t count = 0;
  int peer = -1;  // send, recv; reduce, broadcast: the root
  friend bool operator==(const NcclStep&, const NcclStep&) = default;
};

/// What this rank does, in one group of NCCL's. Nothing is done for elements that are not there.
std::vector<NcclStep> nccl_steps(const ExecutionSpec& what);

}  // namespace tutti
