// relocate.hpp: a view of other memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tutti/view.hpp>

namespace tutti {

/// The same dtype, shape and strides at another address.
inline View relocate(const View& view, const void* data) {
  if (view.is_read_only()) return View::read_only(data, view.dtype(), view.shape(), view.strides(), view.device());
  return View(const_cast<void*>(data), view.dtype(), view.shape(), view.strides(), view.device());
}

}  // namespace tutti
