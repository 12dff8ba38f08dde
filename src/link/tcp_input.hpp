// tcp_input.hpp: taking the frames of one connection apart, with payloads read straight to where they belong.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "wire/frame.hpp"
#include "wire/socket.hpp"

namespace tutti::link {

struct Connection;

// Who gets the frames.
class FrameSink {
 public:
  // A head is complete; its payload follows. MalformedMessage breaks the connection.
  virtual void frame_begins(Connection& connection, const wire::FrameHeader& header,
                            std::span<const std::byte> extra) = 0;
  // Where the first byte of the payload belongs; nullptr: throw it away. Asked again before every read, because a cancel
  // may have taken the memory back.
  virtual std::byte* payload_place(Connection& connection) = 0;
  virtual void frame_ends(Connection& connection) = 0;

 protected:
  ~FrameSink() = default;
};

class Input {
 public:
  // `lookahead_bytes`: how much may be read past a payload, into the buffer. Streams of small frames read many at once;
  // streams of bulk data read just the next head along with a payload, so that payloads are not copied.
  explicit Input(std::size_t lookahead_bytes);

  enum class Status : std::uint8_t { drained, more, closed };
  struct Result {
    Status status = Status::drained;
    std::size_t bytes = 0;
    wire::Transfer last{};  // of a closed connection
  };
  // Reads until nothing is left, about `budget_bytes` were read, or the connection is no longer open. `to_the_end`: the other
  // side has hung up, so read on until that shows.
  struct Limits {
    std::size_t budget_bytes;
    bool to_the_end;
  };
  Result read(Connection& connection, FrameSink& sink, const Limits& limits);
  // Between frames.
  [[nodiscard]] bool idle() const { return parser_.idle() && begin_ == end_; }

 private:
  static constexpr std::size_t buffer_bytes = 16 << 10;

  void use_buffer(Connection& connection, FrameSink& sink);
  wire::Transfer read_once(Connection& connection, FrameSink& sink, std::size_t& asked);
  void take_payload(const std::byte* from, std::size_t bytes);
  void end_payload(Connection& connection, FrameSink& sink);
  [[nodiscard]] std::size_t payload_rest() const;

  std::unique_ptr<std::byte[]> buffer_;
  std::size_t lookahead_bytes_;
  std::size_t begin_ = 0, end_ = 0;  // of what is in the buffer
  wire::FrameParser parser_;
  bool in_payload_ = false;
  std::uint64_t payload_done_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace tutti::link
