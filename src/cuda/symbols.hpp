// symbols.hpp: the functions of a library that was opened at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

namespace tutti::cuda {

/// Fills in the functions; the first that is missing is what is wrong.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}
  template <class F>
  Symbols& operator()(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library_, name));
    if (function == nullptr && missing_ == nullptr) missing_ = name;
    return *this;
  }
  [[nodiscard]] const char* missing() const { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

}  // namespace tutti::cuda
