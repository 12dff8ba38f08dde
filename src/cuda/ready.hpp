// ready.hpp: what has to happen on the GPU before the arrays of a call may be read and written.
// SPDX-License-Identifier: Apache-2.0
//
// Frameworks hand out arrays whose elements are still being computed on some stream. Who calls a verb says which stream that is; the
// call then begins behind what the stream has at that moment. A call that nobody said anything about begins behind the default stream.
#pragma once

#include "cuda/device.hpp"
#include "cuda/driver.hpp"

namespace tutti::cuda {

/// The next call that has an array at this address begins behind what the stream has now. Throws Unsupported while the stream is being
/// captured into a graph. Any thread.
void note_stream(Device& device, const void* array, Stream stream);

/// Has `stream` wait for what was noted of the array, or for the default stream. With the device's context current.
void wait_until_ready(Device& device, const void* array, Stream stream);

}  // namespace tutti::cuda
