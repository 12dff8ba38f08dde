// sizes.hpp: sizes as people type them: 8, 64K, 1M; lists and ranges of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tutti::launch {

/// "8", "64K", "1M", "1.5G", "2GiB": powers of 1024. `option` is what to blame: InvalidArgument says
/// "--bytes 1Q: …" and what is accepted.
std::int64_t parse_size(std::string_view option, std::string_view text);

/// Sizes separated by commas; "8:64M" stands for 8, 16, 32, … up to 64M. In the order given, nothing left out.
std::vector<std::int64_t> parse_sizes(std::string_view option, std::string_view text);

}  // namespace tutti::launch
