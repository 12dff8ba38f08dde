// lowering.hpp: from a checked request to what an executor works on: contiguous blocks of one dtype, counted in elements.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tutti/backend.hpp>

#include "backend/block_layout.hpp"
#include "engine/executor.hpp"

namespace tutti {

/// The parts of a call, as an executor tells them apart.
inline constexpr std::uint32_t agree_phase = 1, size_phase = 2, record_phase = 3, data_phase = 4, end_phase = 5;

/// Small floats that are to be reduced become float32 for the whole collective and are rounded once at the end, so that the result
/// does not depend on the number of hops. An executor that does so by itself gets them as they are, unless they have to be scaled.
DType dtype_on_the_wire(const Request& request, DType dtype, const Executor& executor);

/// All but `spec.in_place`, which depends on where the arrays lie. Reuses the memory of `what`.
void lower(const Request& request, const BlockLayout& layout, const GroupFacts& facts, ExecutionSpec& what);

/// Whether the input is the output, or this rank's block of it, or the other way round. Either may be null.
bool is_in_place(const ExecutionSpec& what, const BlockLayout& layout, const Buffers& arrays);

}  // namespace tutti
