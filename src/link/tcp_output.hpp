// tcp_output.hpp: the frames that wait to be written to one connection.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "wire/channel.hpp"
#include "wire/frame.hpp"

namespace tutti::link {

// A frame on its way out. Its payload is written from where it lies: in the memory of its owner, or in its own.
struct OutgoingFrame {
  wire::EncodedFrame head;
  std::span<const std::byte> payload{};
  void* owner = nullptr;  // told when the frame is written
  std::unique_ptr<std::byte[]> own{};
  std::size_t written = 0;  // of head and payload together

  [[nodiscard]] std::size_t size() const { return head.bytes().size() + payload.size(); }
};

// First in, first out. Reuses its memory: a steady flow of frames allocates nothing.
class Output {
 public:
  void push(OutgoingFrame frame) { frames_.push_back(std::move(frame)); }
  [[nodiscard]] bool empty() const { return first_ == frames_.size(); }
  [[nodiscard]] std::size_t count() const { return frames_.size() - first_; }

  // One system call, for as many frames as it takes.
  wire::Transfer write(wire::Channel& channel);
  // The oldest frame, if it is written; pop() drops it.
  [[nodiscard]] OutgoingFrame* written();
  void pop();

  // The newest frame.
  [[nodiscard]] OutgoingFrame& back() { return frames_.back(); }
  // Takes the owner's memory out of the queue: frames not begun vanish, the rest of one that is half written becomes a copy, because
  // the other side counts on it. Returns how many frames vanished.
  std::size_t withdraw(const void* owner);
  void clear();

 private:
  std::vector<OutgoingFrame> frames_;
  std::size_t first_ = 0;
};

}  // namespace tutti::link
