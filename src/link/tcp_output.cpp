// tcp_output.cpp: gathering frames into few system calls, and taking memory back from them.
// SPDX-License-Identifier: Apache-2.0
#include "link/tcp_output.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace tutti::link {

namespace {

constexpr std::size_t parts_max = 32;

iovec part_of(std::span<const std::byte> bytes) {
  return {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
}

}  // namespace

wire::Transfer Output::write(wire::Channel& channel) {
  std::array<iovec, parts_max> parts;
  std::size_t count = 0;
  for (std::size_t i = first_; i < frames_.size() && count + 2 <= parts_max; ++i) {
    const OutgoingFrame& frame = frames_[i];
    const std::span<const std::byte> head = frame.head.bytes();
    const std::size_t head_written = std::min(frame.written, head.size());
    if (head_written < head.size()) parts[count++] = part_of(head.subspan(head_written));
    const std::span<const std::byte> rest = frame.payload.subspan(frame.written - head_written);
    if (!rest.empty()) parts[count++] = part_of(rest);
  }
  const wire::Transfer moved = channel.write(std::span<const iovec>(parts).first(count));
  std::size_t left = moved.bytes;
  for (std::size_t i = first_; left > 0; ++i) {
    const std::size_t taken = std::min(left, frames_[i].size() - frames_[i].written);
    frames_[i].written += taken;
    left -= taken;
  }
  return moved;
}

OutgoingFrame* Output::written() {
  if (empty() || frames_[first_].written < frames_[first_].size()) return nullptr;
  return &frames_[first_];
}

void Output::pop() {
  frames_[first_++].own.reset();
  if (first_ == frames_.size()) {
    clear();
  } else if (first_ >= 64 && first_ * 2 >= frames_.size()) {
    frames_.erase(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

void Output::clear() {
  frames_.clear();
  first_ = 0;
}

std::size_t Output::withdraw(const void* owner) {
  const auto begin = frames_.begin() + static_cast<std::ptrdiff_t>(first_);
  for (auto frame = begin; frame != frames_.end(); ++frame) {
    if (frame->owner != owner || frame->written == 0) continue;
    const std::size_t bytes = frame->payload.size();
    frame->own = std::make_unique_for_overwrite<std::byte[]>(bytes);
    if (bytes > 0) std::memcpy(frame->own.get(), frame->payload.data(), bytes);
    frame->payload = {frame->own.get(), bytes};
    frame->owner = nullptr;
  }
  const auto kept =
      std::remove_if(begin, frames_.end(), [&](const OutgoingFrame& frame) { return frame.owner == owner; });
  const auto vanished = static_cast<std::size_t>(frames_.end() - kept);
  frames_.erase(kept, frames_.end());
  if (empty()) clear();
  return vanished;
}

}  // namespace tutti::link
