// guarded.hpp: a few bytes that belong into no core file and no swap space.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace tutti {

inline constexpr std::size_t guarded_bytes_max = 128;

/// Memory for a secret of at most guarded_bytes_max bytes: its page is left out of core dumps and, where the system allows
/// that, locked into memory. Wiped when the last holder lets go. bad_alloc where there is none. From any thread.
std::shared_ptr<std::byte[]> guarded_memory();

/// Overwrites what nobody reads any more, which a compiler would leave out otherwise.
void wipe(void* data, std::size_t bytes);

}  // namespace tutti
