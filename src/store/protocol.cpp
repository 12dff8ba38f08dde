// protocol.cpp: encoding and checking the messages of the tcp store.
// SPDX-License-Identifier: Apache-2.0
#include "store/protocol.hpp"

#include <fmt/format.h>

#include <limits>

namespace tutti::store {

namespace {

constexpr std::uint32_t no_expected = std::numeric_limits<std::uint32_t>::max();

struct RequestLengths {
  std::uint64_t id;
  std::uint32_t key_bytes, expected_bytes;
  std::int64_t amount;
};

RequestLengths read_lengths(std::span<const std::byte> extra) {
  ByteReader reader(extra, "the extra of a store request");
  RequestLengths lengths{};
  lengths.id = reader.u64();
  lengths.key_bytes = reader.u32();
  lengths.expected_bytes = reader.u32();
  lengths.amount = reader.i64();
  reader.expect_end();
  return lengths;
}

bool carries_value(Request::Kind kind) { return kind == Request::Kind::set || kind == Request::Kind::compare_set; }

void require(bool holds, std::string_view what) {
  if (!holds) throw MalformedMessage(fmt::format("a store message is malformed: {}", what));
}

}  // namespace

std::string_view name_of(Request::Kind kind) {
  switch (kind) {
    case Request::Kind::set: return "set";
    case Request::Kind::get: return "get";
    case Request::Kind::try_get: return "try_get";
    case Request::Kind::wait: return "wait";
    case Request::Kind::add: return "add";
    case Request::Kind::compare_set: return "compare_set";
    case Request::Kind::remove: return "remove";
    case Request::Kind::cancel: return "cancel";
  }
  return "unknown";
}

std::string encode(const Request& request) {
  const std::size_t expected_bytes = request.expected ? request.expected->size() : 0;
  ByteWriter extra;
  extra.u64(request.id).u32(static_cast<std::uint32_t>(request.key.size()));
  extra.u32(request.expected ? static_cast<std::uint32_t>(expected_bytes) : no_expected).i64(request.amount);

  std::string frame;
  const std::size_t head_bytes = wire::frame_head_bytes + extra.size();
  frame.reserve(head_bytes + request.key.size() + expected_bytes + request.value.size());
  frame.resize(head_bytes);
  frame += request.key;
  if (request.expected) frame += *request.expected;
  frame += request.value;

  const std::span<const char> payload = std::span(frame).subspan(head_bytes);
  const wire::EncodedFrame head({.type = static_cast<std::uint8_t>(request.kind),
                                 .payload_bytes = payload.size(),
                                 .payload_crc = crc32c(std::as_bytes(payload))},
                                extra.data());
  std::copy(head.bytes().begin(), head.bytes().end(), std::as_writable_bytes(std::span(frame)).begin());
  return frame;
}

wire::EncodedFrame encode_head(const Reply& reply) {
  ByteWriter extra;
  extra.u64(reply.id).i64(reply.number);
  const std::string_view payload = reply.value ? std::string_view(*reply.value) : std::string_view();
  return wire::EncodedFrame({.type = static_cast<std::uint8_t>(reply.kind),
                             .payload_bytes = payload.size(),
                             .payload_crc = crc32c(std::as_bytes(std::span(payload)))},
                            extra.data());
}

void RequestFormat::check(const wire::FrameHeader& header, std::span<const std::byte> extra) {
  require(header.type >= static_cast<std::uint8_t>(Request::Kind::set) &&
              header.type <= static_cast<std::uint8_t>(Request::Kind::cancel),
          "no such request");
  const auto kind = static_cast<Request::Kind>(header.type);
  const RequestLengths lengths = read_lengths(extra);
  const bool has_expected = lengths.expected_bytes != no_expected;
  const std::uint64_t before_value = std::uint64_t{lengths.key_bytes} + (has_expected ? lengths.expected_bytes : 0);
  require(lengths.key_bytes <= key_bytes_max, "its key is too long");
  require(!has_expected || kind == Request::Kind::compare_set, "it expects a value where none is compared");
  require(!has_expected || lengths.expected_bytes <= value_bytes_max, "its expected value is too long");
  require(before_value <= header.payload_bytes, "its parts are longer than the whole");
  const std::uint64_t value_bytes = header.payload_bytes - before_value;
  require(value_bytes <= value_bytes_max, "its value is too long");
  require(value_bytes == 0 || carries_value(kind), "it carries a value where none belongs");
}

Request RequestFormat::decode(const wire::FrameHeader& header, std::span<const std::byte> extra, std::string payload) {
  const RequestLengths lengths = read_lengths(extra);
  Request request{.kind = static_cast<Request::Kind>(header.type), .id = lengths.id, .amount = lengths.amount};
  request.key = payload.substr(0, lengths.key_bytes);
  std::size_t position = lengths.key_bytes;
  if (lengths.expected_bytes != no_expected) {
    request.expected = payload.substr(position, lengths.expected_bytes);
    position += lengths.expected_bytes;
  }
  payload.erase(0, position);
  request.value = std::move(payload);
  return request;
}

void ReplyFormat::check(const wire::FrameHeader& header, std::span<const std::byte> extra) {
  require(header.type >= static_cast<std::uint8_t>(Reply::Kind::value) &&
              header.type <= static_cast<std::uint8_t>(Reply::Kind::refused),
          "no such reply");
  require(extra.size() == 16, "its extra has the wrong length");
}

Reply ReplyFormat::decode(const wire::FrameHeader& header, std::span<const std::byte> extra, std::string payload) {
  ByteReader reader(extra, "the extra of a store reply");
  Reply reply{.kind = static_cast<Reply::Kind>(header.type)};
  reply.id = reader.u64();
  reply.number = reader.i64();
  reply.value = std::make_shared<const std::string>(std::move(payload));
  return reply;
}

}  // namespace tutti::store
