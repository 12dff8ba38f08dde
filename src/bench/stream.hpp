// stream.hpp: the least that a verb has to do with memory: read some arrays once, write some once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace tutti::bench {

enum class Stores : std::uint8_t { cached, non_temporal };

/// Each output becomes the sum of the inputs, as float32; of one input, a copy. Without outputs it only reads.
struct Stream {
  std::vector<const float*> inputs{};
  std::vector<float*> outputs{};
  std::int64_t count = 0;
};

/// Part of an array, in elements: whole cache lines (16 elements), or up to the end.
struct Stretch {
  std::int64_t begin = 0, end = 0;
};

/// The arrays are aligned to cache lines.
void run(const Stream& stream, Stretch stretch, Stores stores);

}  // namespace tutti::bench
