// crc32c.hpp: the checksum in every frame (Castagnoli's polynomial, as in iSCSI, ext4 and SSE4.2).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti {

/// Pieces add up: crc32c(b, crc32c(a)) is the checksum of a followed by b. Uses the processor's instruction where it has
/// one: 8 bytes per cycle once three streams hide its latency; otherwise tables, about 1 byte per cycle.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t seed = 0);

namespace detail {
/// The variant without special instructions, for processors that lack them and for tests that compare.
std::uint32_t crc32c_by_table(std::span<const std::byte> data, std::uint32_t seed);
}  // namespace detail

}  // namespace tutti
