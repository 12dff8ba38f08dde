// blocks.hpp: which parts of an arena are in use, which are free with their pages, and which have no pages.
// SPDX-License-Identifier: Apache-2.0
//
// Bookkeeping only: it touches no memory. Every byte of the room is in exactly one of three sets:
//   used   handed out;
//   free   not handed out, committed: handed out again without asking the system;
//   bare   whole pages that are not committed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tutti::shm {

struct Range {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

/// Ranges that neither overlap nor touch: local peers are joined.
class RangeSet {
 public:
  void add(Range range);
  /// A part of one range of the set.
  void remove(Range part);
  /// Where `bytes` fit at a multiple of `alignment`, in the smallest range that has the room.
  [[nodiscard]] std::optional<std::uint64_t> best_fit(std::uint64_t bytes, std::uint64_t alignment) const;
  [[nodiscard]] std::optional<std::uint64_t> first_fit(std::uint64_t bytes, std::uint64_t alignment) const;
  [[nodiscard]] const std::map<std::uint64_t, std::uint64_t>& by_offset() const { return bytes_at_; }
  [[nodiscard]] std::uint64_t bytes() const { return total_; }

 private:
  std::map<std::uint64_t, std::uint64_t> bytes_at_;
  std::uint64_t total_ = 0;
};

class Blocks {
 public:
  static constexpr std::uint64_t granule =
      128;  // two cache lines: neighbouring blocks share none, nor a prefetched pair
  static constexpr std::uint64_t page = 4096;
  static constexpr std::uint64_t huge_page = 2u << 20;

  /// `room` in pages, all of it bare.
  explicit Blocks(Range room) { bare_.add(room); }

  /// A block out of the free set; nothing where none fits.
  std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t alignment);
  /// Returns it to the free set, and how large it was. Nothing where no block begins there.
  std::optional<std::uint64_t> give(std::uint64_t offset);

  /// Pages to commit so that a block of this size fits; nothing where the room is too small or too scattered. Large
  /// blocks begin at a huge page.
  [[nodiscard]] std::optional<Range> pages_for(std::uint64_t bytes, std::uint64_t alignment) const;
  void committed(Range pages);
  /// The whole pages of the free set, largest first, of at least `smallest` bytes.
  [[nodiscard]] std::vector<Range> spare_pages(std::uint64_t smallest) const;
  void uncommitted(Range pages);

  [[nodiscard]] std::uint64_t used_bytes() const { return used_total_; }
  [[nodiscard]] std::uint64_t free_bytes() const { return free_.bytes(); }
  [[nodiscard]] std::uint64_t committed_bytes() const { return used_total_ + free_.bytes(); }
  /// The block that contains the byte at `offset`.
  [[nodiscard]] std::optional<Range> block_at(std::uint64_t offset) const;

 private:
  std::map<std::uint64_t, std::uint64_t> used_;
  std::uint64_t used_total_ = 0;
  RangeSet free_, bare_;
};

}  // namespace tutti::shm
