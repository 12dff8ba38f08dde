// answers.cpp: a rank's answers to those who ask where its program is.
// SPDX-License-Identifier: Apache-2.0
#include "record/answers.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

namespace tutti::record {
namespace {

long futex(Half& word, int operation, std::uint32_t value) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, nullptr, nullptr, 0);
}

}  // namespace

// Tools ask through a mapping of their own: the futex is one of the file, not of this process.
bool Answers::wait() {
  fixed_.answers.store(1);
  while (true) {
    const std::uint32_t asked = fixed_.asked.load();
    {
      const std::lock_guard guard(mutex_);
      if (stops_) return false;
    }
    if (asked != fixed_.answered.load()) return true;
    futex(fixed_.asked, FUTEX_WAIT, asked);
  }
}

void Answers::give(std::string_view stack) {
  const std::uint32_t asked = fixed_.asked.load();
  const std::size_t length = std::min(stack.size(), stack_bytes_max);
  fixed_.stack_bytes.store(0);
  std::memcpy(fixed_.stack.data(), stack.data(), length);
  fixed_.stack_bytes.store(static_cast<std::uint32_t>(length));
  fixed_.answered.store(asked);
  futex(fixed_.answered, FUTEX_WAKE, INT_MAX);
}

void Answers::stop() {
  {
    const std::lock_guard guard(mutex_);
    stops_ = true;
  }
  fixed_.answers.store(0);
  ask();
}

void Answers::ask() {
  fixed_.asked.fetch_add(1);
  futex(fixed_.asked, FUTEX_WAKE, INT_MAX);
}

std::string Answers::latest() const {
  const std::size_t length = std::min<std::size_t>(fixed_.stack_bytes.load(), stack_bytes_max);
  return {fixed_.stack.data(), length};
}

}  // namespace tutti::record
