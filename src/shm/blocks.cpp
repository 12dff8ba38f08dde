// blocks.cpp: bookkeeping of an arena's blocks and pages.
// SPDX-License-Identifier: Apache-2.0
#include "shm/blocks.hpp"

#include <algorithm>
#include <iterator>

namespace tutti::shm {
namespace {

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

constexpr std::uint64_t block_bytes(std::uint64_t bytes) {
  return round_up(std::max<std::uint64_t>(bytes, 1), Blocks::granule);
}

bool fits(std::uint64_t offset, std::uint64_t room, std::uint64_t bytes, std::uint64_t alignment) {
  const std::uint64_t gap = round_up(offset, alignment) - offset;
  return gap <= room && bytes <= room - gap;
}

}  // namespace

void RangeSet::add(Range range) {
  if (range.bytes == 0) return;
  total_ += range.bytes;
  const auto next = bytes_at_.lower_bound(range.offset);
  if (next != bytes_at_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == range.offset) {
      range = {.offset = before->first, .bytes = before->second + range.bytes};
      bytes_at_.erase(before);
    }
  }
  if (next != bytes_at_.end() && range.offset + range.bytes == next->first) {
    range.bytes += next->second;
    bytes_at_.erase(next);
  }
  bytes_at_.emplace(range.offset, range.bytes);
}

void RangeSet::remove(Range part) {
  if (part.bytes == 0) return;
  const auto whole = std::prev(bytes_at_.upper_bound(part.offset));
  const auto [offset, bytes] = *whole;
  bytes_at_.erase(whole);
  total_ -= part.bytes;
  if (part.offset > offset) bytes_at_.emplace(offset, part.offset - offset);
  const std::uint64_t end = offset + bytes, part_end = part.offset + part.bytes;
  if (end > part_end) bytes_at_.emplace(part_end, end - part_end);
}

std::optional<std::uint64_t> RangeSet::best_fit(std::uint64_t bytes, std::uint64_t alignment) const {
  auto best = bytes_at_.end();
  for (auto range = bytes_at_.begin(); range != bytes_at_.end(); ++range) {
    if (!fits(range->first, range->second, bytes, alignment)) continue;
    if (best == bytes_at_.end() || range->second < best->second) best = range;
  }
  if (best == bytes_at_.end()) return std::nullopt;
  return round_up(best->first, alignment);
}

std::optional<std::uint64_t> RangeSet::first_fit(std::uint64_t bytes, std::uint64_t alignment) const {
  for (const auto& [offset, room] : bytes_at_) {
    if (fits(offset, room, bytes, alignment)) return round_up(offset, alignment);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Blocks::take(std::uint64_t bytes, std::uint64_t alignment) {
  bytes = block_bytes(bytes);
  const auto offset = free_.best_fit(bytes, std::max(alignment, granule));
  if (!offset) return std::nullopt;
  free_.remove({.offset = *offset, .bytes = bytes});
  used_.emplace(*offset, bytes);
  used_total_ += bytes;
  return offset;
}

std::optional<std::uint64_t> Blocks::give(std::uint64_t offset) {
  const auto found = used_.find(offset);
  if (found == used_.end()) return std::nullopt;
  const std::uint64_t bytes = found->second;
  used_.erase(found);
  used_total_ -= bytes;
  free_.add({.offset = offset, .bytes = bytes});
  return bytes;
}

std::optional<Range> Blocks::pages_for(std::uint64_t bytes, std::uint64_t alignment) const {
  bytes = round_up(block_bytes(bytes), page);
  const auto offset = bare_.first_fit(bytes, std::max(alignment, bytes >= huge_page ? huge_page : page));
  if (!offset) return std::nullopt;
  return Range{.offset = *offset, .bytes = bytes};
}

void Blocks::committed(Range pages) {
  bare_.remove(pages);
  free_.add(pages);
}

std::vector<Range> Blocks::spare_pages(std::uint64_t smallest) const {
  std::vector<Range> spare;
  for (const auto& [offset, bytes] : free_.by_offset()) {
    const std::uint64_t begin = round_up(offset, page), end = (offset + bytes) / page * page;
    if (end > begin && end - begin >= smallest) spare.push_back({.offset = begin, .bytes = end - begin});
  }
  std::ranges::sort(spare, std::ranges::greater(), &Range::bytes);
  return spare;
}

void Blocks::uncommitted(Range pages) {
  free_.remove(pages);
  bare_.add(pages);
}

std::optional<Range> Blocks::block_at(std::uint64_t offset) const {
  const auto after = used_.upper_bound(offset);
  if (after == used_.begin()) return std::nullopt;
  const auto [begin, bytes] = *std::prev(after);
  if (offset - begin >= bytes) return std::nullopt;
  return Range{.offset = begin, .bytes = bytes};
}

}  // namespace tutti::shm
