// gil_while_brief.hpp: small calls among neighbours keep the GIL.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "bindings/bind.hpp"
#include "bindings/gil.hpp"
#include "group/core.hpp"

namespace tutti::python {

/// Of arrays this small a call among neighbours may be over sooner than the GIL is given up and taken back.
inline constexpr std::int64_t brief_bytes = 4096;

/// Releases the GIL as soon as a call has to wait for anyone, and takes it back at the end.
class GilWhileBrief final : public GroupCore::BlockingHook {
 public:
  GilWhileBrief() = default;
  GilWhileBrief(const GilWhileBrief&) = delete;
  GilWhileBrief& operator=(const GilWhileBrief&) = delete;
  ~GilWhileBrief() noexcept(false) {
    if (released_ != nullptr) take_gil_back(released_);
  }
  void before_blocking() override {
    if (released_ == nullptr) released_ = PyEval_SaveThread();
  }

 private:
  PyThreadState* released_ = nullptr;
};

}  // namespace tutti::python
