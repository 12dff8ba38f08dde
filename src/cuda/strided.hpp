// strided.hpp: elements from one strided layout on the GPU to another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tutti/view.hpp>

#include "cuda/device.hpp"
#include "cuda/kernels.hpp"

namespace tutti::cuda {

/// As few axes as can be, and units as large as runs and alignment allow.
StridedMove plan_move(const View& to, const View& from);

/// Between two views of one shape and dtype, on a stream; contiguous ones are copied as a whole. With the context current. Throws
/// Unsupported where a kernel is needed and there is none.
void copy_view(Device& device, Stream stream, const View& to, const View& from);

/// The same on the device of `from`, behind what was noted of it; returns when it is done.
void copy_now(const View& to, const View& from);

}  // namespace tutti::cuda
