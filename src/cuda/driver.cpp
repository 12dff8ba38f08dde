// driver.cpp: CUDA's driver, opened at run time.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include <tutti/error.hpp>

#include "cuda/symbols.hpp"

namespace tutti::cuda {
namespace {

const char* load(Driver& d, void* library) {
  Symbols load(library);
  load(d.init, "cuInit")(d.version, "cuDriverGetVersion")(d.error_name, "cuGetErrorName");
  load(d.error_text, "cuGetErrorString")(d.device_count, "cuDeviceGetCount")(d.device_get, "cuDeviceGet");
  load(d.device_name, "cuDeviceGetName")(d.device_uuid, "cuDeviceGetUuid");
  load(d.device_attribute, "cuDeviceGetAttribute")(d.retain_context, "cuDevicePrimaryCtxRetain");
  load(d.push_context, "cuCtxPushCurrent_v2")(d.pop_context, "cuCtxPopCurrent_v2");
  load(d.allocate, "cuMemAlloc_v2")(d.free, "cuMemFree_v2")(d.allocate_host, "cuMemHostAlloc");
  load(d.free_host, "cuMemFreeHost")(d.copy, "cuMemcpyAsync")(d.fill, "cuMemsetD8Async");
  load(d.pointer_attribute, "cuPointerGetAttribute")(d.create_stream, "cuStreamCreate");
  load(d.is_capturing, "cuStreamIsCapturing")(d.stream_wait, "cuStreamWaitEvent")(d.stream_query, "cuStreamQuery");
  load(d.create_event, "cuEventCreate")(d.destroy_event, "cuEventDestroy_v2")(d.record, "cuEventRecord");
  load(d.query, "cuEventQuery")(d.synchronize, "cuEventSynchronize")(d.ipc_export, "cuIpcGetMemHandle");
  load(d.ipc_open, "cuIpcOpenMemHandle_v2")(d.ipc_close, "cuIpcCloseMemHandle")(d.load_module, "cuModuleLoadData");
  load(d.get_function, "cuModuleGetFunction")(d.launch, "cuLaunchKernel");
  return load.missing();
}

std::string first_line(const char* text) { return text == nullptr ? std::string("no reason is given") : text; }

FoundDriver look() {
  FoundDriver found;
  // The environment of the process, not of a rank: a process has one driver.
  const char* const asked = std::getenv("TUTTI_CUDA_LIBRARY");  // NOLINT(concurrency-mt-unsafe): read once
  found.file = asked != nullptr && *asked != '\0' ? asked : "libcuda.so.1";
  if (found.file == "none") {
    found.problem = "TUTTI_CUDA_LIBRARY=none asks for no GPU to be used";
    return found;
  }
  void* const library = dlopen(found.file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    found.problem = fmt::format("NVIDIA's driver is not there: {}", first_line(dlerror()));
    return found;
  }
  static Driver functions;
  if (const char* const missing = load(functions, library)) {
    found.problem = fmt::format("{} has no {}: a driver for CUDA 11.2 or newer is needed", found.file, missing);
    return found;
  }
  if (const Result result = functions.init(0); result != success) {
    found.problem = fmt::format("NVIDIA's driver does not start: {}", describe(functions, result));
    return found;
  }
  static_cast<void>(functions.version(&found.version));
  static_cast<void>(functions.device_count(&found.device_count));
  if (found.device_count == 0) {
    found.problem = "NVIDIA's driver finds no GPU (CUDA_VISIBLE_DEVICES may hide it)";
    return found;
  }
  found.driver = &functions;
  return found;
}

}  // namespace

const FoundDriver& find_driver() {
  static const FoundDriver found = look();
  return found;
}

const Driver& driver() {
  const FoundDriver& found = find_driver();
  if (found.driver != nullptr) return *found.driver;
  throw Unsupported(
      fmt::format("arrays on a GPU cannot be used here: {}; copy the array to the CPU's memory first", found.problem));
}

std::string describe(const Driver& driver, Result result) {
  const char *name = nullptr, *text = nullptr;
  if (driver.error_name(result, &name) != success || driver.error_text(result, &text) != success)
    return fmt::format("CUDA error {}", result);
  return fmt::format("{} ({})", text, name);
}

void check(Result result, std::string_view what) {
  if (result == success) return;
  const FoundDriver& found = find_driver();
  const std::string why = found.driver != nullptr ? describe(*found.driver, result) : fmt::format("{}", result);
  throw Error(
      fmt::format("CUDA: {}: {}{}", what, why,
                  result == out_of_memory ? "; the GPU is full, and its memory is shared by all its processes" : ""));
}

}  // namespace tutti::cuda
