// process_fd.cpp: which descriptors forked children do not keep.
// SPDX-License-Identifier: Apache-2.0
#include "base/process_fd.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tutti {
namespace {

constexpr std::size_t word_bits = 64;
// A million, as many as a process may have by default. Pages of the table come into being where descriptors are.
constexpr std::size_t words_max = (std::size_t{1} << 20) / word_bits;

std::array<std::atomic<std::uint64_t>, words_max> noted;
std::atomic<std::size_t> words = 0;  // that may have bits set

struct Bit {
  explicit Bit(int fd) : word(static_cast<std::size_t>(fd) / word_bits), mask(std::uint64_t{1} << (fd % word_bits)) {}
  std::size_t word;
  std::uint64_t mask;
};

/// Whether it was noted. One that is beyond the table counts as noted: children keep it, and close it as their own.
bool forget(int fd) {
  const Bit bit(fd);
  return bit.word >= words_max || (noted[bit.word].fetch_and(~bit.mask) & bit.mask) != 0;
}

}  // namespace

void ProcessFd::note() const {
  if (fd_ < 0) return;
  const Bit bit(fd_);
  if (bit.word >= words_max) return;
  noted[bit.word].fetch_or(bit.mask);
  std::size_t seen = words.load();
  while (seen <= bit.word && !words.compare_exchange_weak(seen, bit.word + 1)) {}
}

UniqueFd ProcessFd::release() {
  const int fd = std::exchange(fd_, -1);
  return fd >= 0 && forget(fd) ? UniqueFd(fd) : UniqueFd();
}

void ProcessFd::reset() { static_cast<void>(release()); }

void ProcessFd::close_in_child() {
  for (std::size_t word = 0; word < words; ++word) {
    for (std::uint64_t left = noted[word].exchange(0); left != 0; left &= left - 1) {
      ::close(static_cast<int>(word * word_bits) + std::countr_zero(left));
    }
  }
}

}  // namespace tutti
