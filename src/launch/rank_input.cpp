// rank_input.cpp: a pipe that is written as far as it has room.
// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_input.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tutti::launch {

UniqueFd RankInput::open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  writer_.reset(ends[1]);
  fcntl(writer_.get(), F_SETFL, O_NONBLOCK);
  if (is_ending_ && unwritten_.empty()) writer_.reset();
  return UniqueFd(ends[0]);
}

void RankInput::add(std::span<const std::byte> bytes) {
  unwritten_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void RankInput::close_when_written() {
  is_ending_ = true;
  if (unwritten_.empty()) writer_.reset();
}

bool RankInput::write_some() {
  if (unwritten_.empty() || !writer_) return false;
  const ssize_t bytes = write(writer_.get(), unwritten_.data(), unwritten_.size());
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (bytes < 0) {
    writer_.reset();
    unwritten_.clear();
    return true;
  }
  unwritten_.erase(0, static_cast<std::size_t>(bytes));
  if (unwritten_.empty() && is_ending_) writer_.reset();
  return unwritten_.empty();
}

}  // namespace tutti::launch
