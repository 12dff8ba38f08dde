// tcp_input.cpp: reading frames.
// SPDX-License-Identifier: Apache-2.0
#include "link/tcp_input.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/crc32c.hpp"
#include "link/tcp_connection.hpp"
#include "link/tcp_frames.hpp"

namespace tutti::link {

Input::Input(std::size_t lookahead_bytes)
    : buffer_(std::make_unique_for_overwrite<std::byte[]>(buffer_bytes)),
      lookahead_bytes_(std::min(lookahead_bytes, buffer_bytes)),
      parser_({.payload_bytes_max = frame_payload_bytes_max}) {}

std::size_t Input::payload_rest() const {
  return static_cast<std::size_t>(parser_.header().payload_bytes - payload_done_);
}

Input::Result Input::read(Connection& connection, FrameSink& sink, const Limits& limits) {
  Result result;
  while (result.bytes < limits.budget_bytes) {
    std::size_t asked = 0;
    const wire::Transfer moved = read_once(connection, sink, asked);
    result.bytes += moved.bytes;
    if (moved.closed()) return {Status::closed, result.bytes, moved};
    use_buffer(connection, sink);
    if (!moved.moved() || !connection.is_open()) return result;
    // A short read has emptied the socket; asking again would only cost time.
    if (moved.bytes < asked && !limits.to_the_end) return result;
  }
  result.status = Status::more;
  return result;
}

// The buffer is empty here: what is read goes to the payload's place and, past its end, into the buffer.
wire::Transfer Input::read_once(Connection& connection, FrameSink& sink, std::size_t& asked) {
  wire::Channel& channel = connection.channel;
  begin_ = end_ = 0;
  if (!in_payload_) {
    asked = lookahead_bytes_;
    const wire::Transfer moved = channel.read(std::span(buffer_.get(), asked));
    end_ = moved.bytes;
    return moved;
  }
  const std::size_t rest = payload_rest();
  std::byte* const place = sink.payload_place(connection);
  if (place == nullptr) {
    asked = std::min(rest, buffer_bytes);
    const wire::Transfer moved = channel.read(std::span(buffer_.get(), asked));
    take_payload(buffer_.get(), moved.bytes);
    return moved;
  }
  const std::array<iovec, 2> parts{iovec{place + payload_done_, rest}, iovec{buffer_.get(), lookahead_bytes_}};
  asked = rest + lookahead_bytes_;
  const wire::Transfer moved = channel.read(parts);
  take_payload(place + payload_done_, std::min(rest, moved.bytes));
  end_ = moved.bytes - std::min(rest, moved.bytes);
  return moved;
}

// Summed up part by part, while the bytes are still in the cache.
void Input::take_payload(const std::byte* from, std::size_t bytes) {
  if ((parser_.header().flags & checked_flag) != 0) crc_ = crc32c({from, bytes}, crc_);
  payload_done_ += bytes;
}

void Input::use_buffer(Connection& connection, FrameSink& sink) {
  for (;;) {
    if (in_payload_) {
      const std::size_t bytes = std::min(payload_rest(), end_ - begin_);
      std::byte* const place = bytes > 0 ? sink.payload_place(connection) : nullptr;
      if (place != nullptr) std::memcpy(place + payload_done_, buffer_.get() + begin_, bytes);
      take_payload(buffer_.get() + begin_, bytes);
      begin_ += bytes;
      if (payload_rest() > 0) return;
      end_payload(connection, sink);
    } else {
      begin_ += parser_.feed({buffer_.get() + begin_, end_ - begin_});
      if (!parser_.complete()) return;
      in_payload_ = true;
      payload_done_ = 0;
      crc_ = 0;
      sink.frame_begins(connection, parser_.header(), parser_.extra());
    }
    if (!connection.is_open()) return;
  }
}

void Input::end_payload(Connection& connection, FrameSink& sink) {
  const wire::FrameHeader& header = parser_.header();
  if ((header.flags & checked_flag) != 0 && crc_ != header.payload_crc) {
    throw MalformedMessage("the checksum of a payload is wrong: bytes were damaged on the way");
  }
  in_payload_ = false;
  parser_.next();
  sink.frame_ends(connection);
}

}  // namespace tutti::link
