// protocol.hpp: what clients and server of the tcp store say to each other, and the records of the file store.
// SPDX-License-Identifier: Apache-2.0
//
// Each message is a frame. A request's extra is u64 id | u32 key_bytes | u32 expected_bytes | i64 amount, its payload
// is key, expected and value; a reply's extra is u64 id | i64 number, its payload is a value. Ids are the client's own:
// answers may come in any order, because waiting is done by the server.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/crc32c.hpp"
#include "store/limits.hpp"
#include "store/table.hpp"
#include "wire/frame.hpp"

namespace tutti::store {

struct Request {
  enum class Kind : std::uint8_t { set = 1, get, try_get, wait, add, compare_set, remove, cancel };

  Kind kind = Kind::set;
  std::uint64_t id = 0;  // of a cancel: the request that nobody waits for any more
  std::string key = {};
  std::optional<std::string> expected = {};
  std::string value = {};
  std::int64_t amount = 0;
};

struct Reply {
  enum class Kind : std::uint8_t { value = 65, absent, number, refused };

  Kind kind = Kind::absent;
  std::uint64_t id = 0;
  Value value = nullptr;  // of refused: why
  std::int64_t number = 0;
};

std::string_view name_of(Request::Kind kind);

// The whole frame.
std::string encode(const Request& request);
// The head; reply.value follows it, and is not copied.
wire::EncodedFrame encode_head(const Reply& reply);

// How a message is checked from its head, before memory is taken, and made from its payload. Both throw
// MalformedMessage.
struct RequestFormat {
  using Message = Request;
  static constexpr std::uint64_t payload_bytes_max = key_bytes_max + 2 * value_bytes_max;
  static void check(const wire::FrameHeader& header, std::span<const std::byte> extra);
  static Request decode(const wire::FrameHeader& header, std::span<const std::byte> extra, std::string payload);
};
struct ReplyFormat {
  using Message = Reply;
  static constexpr std::uint64_t payload_bytes_max = value_bytes_max;
  static void check(const wire::FrameHeader& header, std::span<const std::byte> extra);
  static Reply decode(const wire::FrameHeader& header, std::span<const std::byte> extra, std::string payload);
};

// Takes a stream of bytes apart into messages. Does no I/O: the caller feeds it bytes. Memory grows with the bytes that
// came, not with those that were announced.
template <class Format>
class MessageStream {
 public:
  // Calls handle(Message&&) for each message that is complete. Throws MalformedMessage; then the stream is of no more
  // use.
  template <class Handle>
  void feed(std::span<const std::byte> bytes, Handle&& handle) {
    while (true) {
      if (!parser_.complete()) {
        bytes = bytes.subspan(parser_.feed(bytes));
        if (!parser_.complete()) return;
        Format::check(parser_.header(), parser_.extra());
      }
      const std::size_t missing = static_cast<std::size_t>(parser_.header().payload_bytes) - payload_.size();
      const auto piece = bytes.first(std::min(missing, bytes.size()));
      payload_.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      bytes = bytes.subspan(piece.size());
      if (piece.size() < missing) return;
      handle(finish());
    }
  }

 private:
  typename Format::Message finish() {
    if (crc32c(std::as_bytes(std::span(payload_))) != parser_.header().payload_crc) {
      throw MalformedMessage("the checksum of a store message is wrong: it was damaged on its way");
    }
    auto message = Format::decode(parser_.header(), parser_.extra(), std::exchange(payload_, {}));
    parser_.next();
    return message;
  }

  static constexpr wire::FrameParser::Limits limits{.payload_bytes_max = Format::payload_bytes_max,
                                                    .extra_bytes_max = 24};
  wire::FrameParser parser_{limits};
  std::string payload_;
};

using RequestStream = MessageStream<RequestFormat>;
using ReplyStream = MessageStream<ReplyFormat>;

}  // namespace tutti::store
