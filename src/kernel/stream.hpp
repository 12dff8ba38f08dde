// stream.hpp: copies with non-temporal stores, for arrays larger than the caches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::kernel {

/// Of the last cache that a core shares with its neighbours, where sysconf() tells the sum of all of them on some processors. Where the
/// system does not tell: a usual size.
std::int64_t shared_cache_bytes();

/// Like memcpy, but the destination is neither read nor brought into the caches. The source is best in the caches.
/// Ordered before any later store of this thread, as with memcpy.
void copy_streaming(void* to, const void* from, std::size_t bytes);

}  // namespace tutti::kernel
