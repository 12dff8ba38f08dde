// crc32c.cpp: CRC-32C by instruction, three streams at a time, or by table.
// SPDX-License-Identifier: Apache-2.0
//
// The crc32 instruction takes 3 cycles and can start every cycle, so one stream uses a third of it. Three adjacent
// blocks are therefore summed side by side; afterwards the first two sums are moved past the blocks that follow them,
// which is a linear map over GF(2) and so four table lookups.
#include "base/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace tutti {
namespace {

using Table = std::array<std::uint32_t, 256>;

constexpr std::uint32_t polynomial = 0x82f63b78u;  // bit-reversed

// slices[k][b]: what byte b contributes when k more bytes follow it.
consteval std::array<Table, 8> make_slices() {
  std::array<Table, 8> slices{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
    slices[0][byte] = crc;
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    for (std::size_t k = 1; k < 8; ++k) {
      slices[k][byte] = (slices[k - 1][byte] >> 8) ^ slices[0][slices[k - 1][byte] & 0xff];
    }
  }
  return slices;
}
constexpr std::array<Table, 8> slices = make_slices();

std::uint64_t load_little_endian(const std::byte* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

#if defined(__x86_64__)

// moved[k][b]: byte k of a sum with value b, after `bytes` zero bytes have followed.
using Move = std::array<Table, 4>;

consteval Move make_move(std::size_t bytes) {
  std::array<std::uint32_t, 32> columns{};  // where each bit of the sum ends up
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    const std::uint32_t crc = 1u << bit;
    columns[bit] = (crc >> 8) ^ slices[0][crc & 0xff];
  }
  for (; bytes > 1; bytes /= 2) {  // powers of two only: the map for twice the bytes is the map applied twice
    std::array<std::uint32_t, 32> twice{};
    for (std::size_t bit = 0; bit < 32; ++bit) {
      for (std::size_t part = 0; part < 32; ++part) {
        if (((columns[bit] >> part) & 1) != 0) twice[bit] ^= columns[part];
      }
    }
    columns = twice;
  }
  Move move{};
  for (std::size_t k = 0; k < 4; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      for (std::size_t bit = 0; bit < 8; ++bit) {
        if (((byte >> bit) & 1) != 0) move[k][byte] ^= columns[8 * k + bit];
      }
    }
  }
  return move;
}

constexpr std::size_t long_block = 4096;  // large frames: the moves cost next to nothing
constexpr std::size_t short_block = 256;  // small ones still gain from three streams
constexpr Move past_long = make_move(long_block);
constexpr Move past_short = make_move(short_block);

constexpr std::uint32_t apply(const Move& move, std::uint32_t crc) {
  return move[0][crc & 0xff] ^ move[1][(crc >> 8) & 0xff] ^ move[2][(crc >> 16) & 0xff] ^ move[3][crc >> 24];
}

template <std::size_t block>
__attribute__((target("sse4.2"))) const std::byte* sum_three_streams(const std::byte* at, const std::byte* end,
                                                                     std::uint64_t& crc, const Move& past_block) {
  while (static_cast<std::size_t>(end - at) >= 3 * block) {
    std::uint64_t first = crc;
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (const std::byte* stop = at + block; at < stop; at += 8) {
      first = _mm_crc32_u64(first, load_little_endian(at));
      second = _mm_crc32_u64(second, load_little_endian(at + block));
      third = _mm_crc32_u64(third, load_little_endian(at + 2 * block));
    }
    const std::uint32_t two = apply(past_block, static_cast<std::uint32_t>(first)) ^ static_cast<std::uint32_t>(second);
    crc = apply(past_block, two) ^ static_cast<std::uint32_t>(third);
    at += 2 * block;
  }
  return at;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::span<const std::byte> data,
                                                                      std::uint32_t seed) {
  std::uint64_t crc = ~seed;
  const std::byte* at = data.data();
  const std::byte* const end = at + data.size();
  at = sum_three_streams<long_block>(at, end, crc, past_long);
  at = sum_three_streams<short_block>(at, end, crc, past_short);
  for (; end - at >= 8; at += 8) crc = _mm_crc32_u64(crc, load_little_endian(at));
  auto rest = static_cast<std::uint32_t>(crc);
  for (; at != end; ++at) rest = _mm_crc32_u8(rest, static_cast<std::uint8_t>(*at));
  return ~rest;
}

#endif

}  // namespace

std::uint32_t detail::crc32c_by_table(std::span<const std::byte> data, std::uint32_t seed) {
  std::uint32_t crc = ~seed;
  const std::byte* at = data.data();
  const std::byte* const end = at + data.size();
  for (; end - at >= 8; at += 8) {
    const std::uint64_t word = load_little_endian(at) ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= slices[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; at != end; ++at) crc = (crc >> 8) ^ slices[0][(crc ^ static_cast<std::uint32_t>(*at)) & 0xff];
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t seed) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32c_by_instruction(data, seed);
#endif
  return detail::crc32c_by_table(data, seed);
}

}  // namespace tutti
