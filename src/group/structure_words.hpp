// structure_words.hpp: what the hashes of fused trees of arrays stand for, for messages about trees that differ.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

/// Request::structure is a hash; these are the words that it was made of. The oldest ones make room. For any thread.
void note_structure(std::uint64_t hash, std::string_view words);
/// Empty: not known.
[[nodiscard]] std::string structure_words(std::uint64_t hash);

}  // namespace tutti
