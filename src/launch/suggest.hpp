// suggest.hpp: what somebody may have meant by a word that is not known.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tutti::launch {

// How many letters have to be inserted, left out, replaced or swapped with their neighbour to turn one into the other.
std::size_t edit_distance(std::string_view from, std::string_view to);

// The known word nearest to `word`, "" if none is near enough to be a slip of the finger. A word that begins a known one
// (--nproc for --nproc-per-node) counts as near.
std::string nearest(std::string_view word, std::span<const std::string> known);

// "; did you mean --quiet?", or "".
std::string did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace tutti::launch
