// stream.hpp: copies past the caches, for what is larger than they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tutti::kernel {

/// Like memcpy, but the destination is not brought into the caches, nor read before it is written. What is read from `from`
/// best lies in them. Written before any later store of this thread, as with memcpy.
void copy_streaming(void* to, const void* from, std::size_t bytes);

}  // namespace tutti::kernel
