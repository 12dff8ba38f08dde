// guarded.hpp: memory for secrets that must not appear in core files or swap space.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace tutti {

inline constexpr std::size_t guarded_bytes_max = 128;

/// Memory for a secret of at most guarded_bytes_max bytes: its page is left out of core dumps and, where the system
/// allows that, locked into memory. Wiped when the last holder releases it. bad_alloc where there is none. From any
/// thread.
std::shared_ptr<std::byte[]> guarded_memory();

/// Overwrites memory that is not read any more; a compiler could remove an ordinary store.
void wipe(void* data, std::size_t bytes);

}  // namespace tutti
