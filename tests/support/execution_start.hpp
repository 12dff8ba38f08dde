// execution_start.hpp: for the tests: one start of a collective in shared memory: what it is, and its arrays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/executor.hpp"

namespace tutti::intranode {

struct ExecutionStart {
  const Spec* spec = nullptr;  // outlives the execution
  DType dtype = DType::uint8;
  Op op = Op::sum;
  double divisor = 1;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  Signature signature{};
  std::uint32_t phase = 0;
};

}  // namespace tutti::intranode
