// words.hpp: ranks, spans of time and amounts as people read them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tutti::watch {

/// "rank 2", "ranks 0, 1 and 3".
std::string say_ranks(std::span<const int> ranks);
/// "3.2 s", "410 ms", "12 µs"
std::string say_time(std::int64_t ns);
/// "12.3 MiB"
std::string say_bytes(double bytes);
/// "1.2 k"
std::string say_count(double count);

}  // namespace tutti::watch
