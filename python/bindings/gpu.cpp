// gpu.cpp: arrays on GPUs: the stream on which their elements are made.
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>

#include <cstdint>

#include "bindings/bind.hpp"
#include "cuda/driver.hpp"
#include "cuda/ready.hpp"

namespace tutti::python {

void bind_gpu(nb::module_& m) {
  m.def(
      "note_stream",
      [](std::uintptr_t array, int gpu, std::uintptr_t stream) {
        cuda::note_stream(cuda::Device::get(gpu), reinterpret_cast<const void*>(array),  // NOLINT: addresses are
                          reinterpret_cast<cuda::Stream>(stream));                       // what frameworks give
      },
      nb::arg("array"), nb::arg("gpu"), nb::arg("stream"), nb::call_guard<nb::gil_scoped_release>(),
      "The next call that has an array at this address begins behind what the stream has now.");
  m.def(
      "gpu_problem", [] { return cuda::find_driver().problem; }, "Why this process can use no GPU; empty: it can.");
}

}  // namespace tutti::python
