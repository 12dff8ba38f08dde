// protocol_fuzz.cpp: any bytes are requests that the server answers, or a MalformedMessage; and the same for replies.
// SPDX-License-Identifier: Apache-2.0
//
// Checksums would keep a fuzzer out, so the input is a list of {kind, lengths, bytes} that is framed here. One form goes to
// the stream as it is, without frames.
#include <algorithm>
#include <cstdlib>

#include "store/service.hpp"

namespace {

using namespace tutti;
using namespace tutti::store;

void require(bool holds) {
  if (!holds) std::abort();
}

// Small numbers from the front of the input.
class Dice {
 public:
  explicit Dice(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const auto value = std::to_integer<std::uint8_t>(bytes_[0]);
    bytes_ = bytes_.subspan(1);
    return value;
  }
  std::string text(std::size_t length) {
    const auto piece = bytes_.first(std::min(length, bytes_.size()));
    bytes_ = bytes_.subspan(piece.size());
    return {reinterpret_cast<const char*>(piece.data()), piece.size()};
  }

 private:
  std::span<const std::byte> bytes_;
};

// A frame with right checksums and any content. Lengths that do not fit are made by adding the odd high bit.
std::string any_frame(Dice& dice) {
  const std::uint8_t type = dice.byte();
  const std::uint8_t shape = dice.byte();
  const std::string payload = dice.text(dice.byte());
  ByteWriter extra;
  extra.u64(dice.byte() % 4u);
  extra.u32((shape & 1) != 0 ? dice.byte() : static_cast<std::uint32_t>(payload.size()) / 2);
  extra.u32((shape & 2) != 0 ? dice.byte() : 0xffffffffu).i64(static_cast<std::int8_t>(dice.byte()));
  const std::uint64_t announced = payload.size() + ((shape & 4) != 0 ? std::uint64_t{dice.byte()} << 24 : 0);
  const auto extra_bytes = (shape & 8) != 0 ? extra.data().first(dice.byte() % 25u) : extra.data();
  const wire::EncodedFrame head({.type = static_cast<std::uint8_t>(type % 80),
                                 .payload_bytes = announced,
                                 .payload_crc = crc32c(std::as_bytes(std::span(payload)))},
                                extra_bytes);
  return std::string(reinterpret_cast<const char*>(head.bytes().data()), head.bytes().size()) + payload;
}

template <class Stream, class Handle>
void feed_in_pieces(Stream& stream, std::span<const std::byte> bytes, std::size_t piece, Handle&& handle) {
  while (!bytes.empty()) {
    const auto front = bytes.first(std::min(piece, bytes.size()));
    stream.feed(front, handle);
    bytes = bytes.subspan(front.size());
  }
}

void serve(std::string_view stream_bytes, std::size_t piece) {
  Service service;
  std::size_t asked = 0, answered = 0;
  RequestStream requests;
  std::uint64_t client = 0;
  const auto bytes = std::as_bytes(std::span(stream_bytes));
  try {
    feed_in_pieces(requests, bytes, piece, [&](Request&& request) {
      require(request.key.size() <= key_bytes_max && request.value.size() <= value_bytes_max);
      const std::string again = encode(request);
      RequestStream echo;
      echo.feed(std::as_bytes(std::span(again)), [&](Request&& same) { require(encode(same) == again); });
      asked += request.kind == Request::Kind::cancel ? 0 : 1;
      answered += service.handle(client++ % 3, std::move(request)).size();
    });
  } catch (const MalformedMessage&) {}
  require(answered <= asked && service.parked_count() <= asked);
  for (std::uint64_t id = 0; id < 3; ++id) service.gone(id);
  require(service.parked_count() == 0);
  try {
    ReplyStream replies;
    feed_in_pieces(replies, bytes, piece, [](Reply&& reply) { require(reply.value != nullptr); });
  } catch (const MalformedMessage&) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Dice dice(std::as_bytes(std::span(data, size)));
  const std::uint8_t form = dice.byte();
  std::string stream;
  if (form % 4 == 0) {
    stream = dice.text(size);
  } else {
    while (!dice.empty()) stream += any_frame(dice);
  }
  serve(stream, form / 4 + 1u);
  return 0;
}
