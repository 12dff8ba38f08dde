// device.hpp: one GPU as this process uses it: its context, streams of our own, events, and the kernels.
// SPDX-License-Identifier: Apache-2.0
//
// The context is the device's primary one, which torch, JAX and CuPy use, too. Nothing here waits for the GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/view.hpp>

#include "cuda/driver.hpp"

namespace tutti::cuda {

class Device {
 public:
  /// Of this process, made when it is first asked for and never destroyed: the driver may be gone before static objects are. Throws
  /// Unsupported where there is no such GPU.
  static Device& get(int index);

  [[nodiscard]] int index() const { return index_; }
  [[nodiscard]] const Uuid& uuid() const { return uuid_; }
  [[nodiscard]] int multiprocessors() const { return multiprocessors_; }

  /// This device's context is the thread's as long as it lives.
  class Current {
   public:
    explicit Current(const Device& device);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
  };

  // With the context current.
  [[nodiscard]] Event take_event();
  void give_back(Event event);
  [[nodiscard]] Stream take_stream();
  void give_back_stream(Stream stream);
  /// A kernel of ours; null: this build has none (no nvcc when it was built), or the GPU cannot run them.
  [[nodiscard]] Function kernel(std::string_view name);
  [[nodiscard]] bool has_kernels();
  /// Why not.
  [[nodiscard]] const std::string& kernel_problem() const { return kernel_problem_; }

 private:
  explicit Device(int index);

  int index_;
  Context context_ = nullptr;
  Uuid uuid_{};
  int multiprocessors_ = 1;
  std::mutex mutex_;
  std::vector<Event> events_;
  std::vector<Stream> streams_;
  Module module_ = nullptr;
  std::map<std::string, Function, std::less<>> kernels_;
  bool is_module_asked_ = false;
  std::string kernel_problem_;
};

/// Has it happened? Throws what went wrong on the GPU.
bool has_happened(Event event);

}  // namespace tutti::cuda
