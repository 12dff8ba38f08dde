// fake_gpu.hpp: a driver of CUDA's and an NCCL for machines without a GPU, whose memory is the CPU's.
// SPDX-License-Identifier: Apache-2.0
//
// One library is both (TUTTI_CUDA_LIBRARY, TUTTI_NCCL_LIBRARY). A stream is a thread that does one thing after the other; an event is over when
// its stream has come to it. Processes have a GPU each, or the one that TUTTI_TEST_GPU names. There are no kernels, and no memory that can be
// shared.
#pragma once

#include <functional>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace tutti::fake {

/// Has the stream do it after what it has; null: the default stream.
void enqueue(void* stream, std::function<void()> task);

}  // namespace tutti::fake
