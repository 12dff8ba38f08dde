// message.cpp: control messages to bytes and back.
// SPDX-License-Identifier: Apache-2.0
#include "control/message.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"

namespace tutti::control {

namespace {

// Long texts are truncated: a shortened explanation is better than none.
class Writer {
 public:
  void u8(std::size_t value) { out_.u8(static_cast<std::uint8_t>(value)); }
  void rank(int value) { out_.u32(static_cast<std::uint32_t>(value)); }
  void text(std::string_view value) { out_.string(value.substr(0, text_bytes_max)); }
  void ranks(const std::vector<int>& values) {
    const std::size_t count = std::min(values.size(), listed_ranks_max);
    out_.u32(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i) rank(values[i]);
  }
  void cause(const Cause& c) {
    u8(static_cast<std::size_t>(c.kind));
    ranks(c.culprits);
    out_.u64(c.sequence);
    text(c.text);
  }
  void name(const CreationName& n) { out_.u64(n.list).u64(n.ordinal); }
  void group(std::uint64_t id, std::uint32_t epoch) { out_.u64(id).u32(epoch); }

  void operator()(const Suspect& m) {
    rank(m.accused), u8(m.is_witness ? 1 : 0), text(m.reason), u8(m.is_certain ? 1 : 0);
  }
  void operator()(const Alive& m) { out_.u32(m.away_ms); }
  void operator()(const Lost& m) { rank(m.rank), cause(m.cause); }
  void operator()(const Proposal& m) { group(m.group, m.epoch), cause(m.cause); }
  void operator()(const Broken& m) { group(m.group, m.epoch), cause(m.cause); }
  void operator()(const Goodbye& m) {
    u8(m.more ? 1 : 0), u8(m.has_store ? 1 : 0);
    out_.u32(static_cast<std::uint32_t>(m.positions.size()));
    for (const Position& each : m.positions) {
      group(each.group, each.epoch), out_.u64(each.calls).u64(each.history).u64(each.refused);
      u8(each.is_known ? 1 : 0);
    }
  }
  void operator()(const Departed& m) { rank(m.rank); }
  void operator()(const Refused& m) { group(m.group, m.epoch), out_.u64(m.sequence), text(m.text); }
  void operator()(const StoreMoved& m) { rank(m.keeper); }

  void operator()(const Probe& m) { out_.u64(m.id).blob(m.question); }
  void operator()(const ProbeAnswer& m) { out_.u64(m.id).blob(m.answer); }
  void operator()(const Join& m) { name(m.name), out_.u32(m.member_count), ranks(m.members); }
  void operator()(const Missing& m) { name(m.name), cause(m.cause); }
  void operator()(const Made& m) { name(m.name), out_.u64(m.group).blob(m.blob); }
  void operator()(const Taken& m) { name(m.name); }
  void operator()(const GaveUp& m) { name(m.name), cause(m.cause); }
  void operator()(const CalledOff& m) { name(m.name), cause(m.cause); }
  void operator()(const StoreAsked& m) {
    u8(static_cast<std::size_t>(m.kind)), out_.u64(m.id).u32(m.slot).string(m.key), u8(m.has_expected ? 1 : 0);
    out_.string(m.expected).string(m.value).i64(m.amount);
  }
  void operator()(const StoreAnswered& m) {
    u8(m.waits ? 1 : 0), u8(static_cast<std::size_t>(m.kind)), out_.u64(m.id).string(m.value).i64(m.number);
  }
  void operator()(const StoreOffered& m) { out_.u32(m.parts); }
  void operator()(const StoreFetched& m) { out_.u32(m.taken); }
  void operator()(const StorePart& m) { out_.u32(m.part).blob(m.bytes); }

  void operator()(const Beat& m) { out_.u32(m.lag_ms); }
  void operator()(const Link&) {}
  void operator()(const Seen&) {}
  void operator()(const Flooded& m) {
    rank(m.origin), out_.u64(m.number), u8(m.body.index());
    std::visit(*this, m.body);
  }
  void operator()(const Routed& m) {
    rank(m.origin), rank(m.to), u8(static_cast<std::size_t>(m.hops_left)), u8(m.body.index());
    std::visit(*this, m.body);
  }

  ByteWriter out_;
};

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, int world_size)
      : in_(bytes, "a control message"), world_size_(static_cast<std::uint32_t>(world_size)) {}

  int rank() {
    const std::uint32_t value = in_.u32();
    if (value >= world_size_) {
      throw MalformedMessage(fmt::format("a control message names rank {} of a world of {}", value, world_size_));
    }
    return static_cast<int>(value);
  }
  bool flag() {
    const std::uint8_t value = in_.u8();
    if (value > 1) throw MalformedMessage(fmt::format("a control message with {} where yes or no belongs", value));
    return value == 1;
  }
  std::string text() { return in_.string(text_bytes_max); }
  std::vector<int> ranks() {
    const std::uint32_t count = in_.u32();
    if (count > listed_ranks_max || count > in_.remaining() / 4) {
      throw MalformedMessage(fmt::format("a control message with a list of {} ranks", count));
    }
    std::vector<int> values(count);
    for (int& value : values) value = rank();
    return values;
  }
  Cause cause() {
    Cause c;
    const std::uint8_t kind = in_.u8();
    if (kind >= cause_kind_count)
      throw MalformedMessage(fmt::format("a control message with a cause of kind {}", kind));
    c.kind = static_cast<Cause::Kind>(kind);
    c.culprits = ranks();
    c.sequence = in_.u64();
    c.text = text();
    return c;
  }
  template <class Kind>
  Kind kind(Kind first, Kind last) {
    const auto value = static_cast<Kind>(in_.u8());
    if (value >= first && value <= last) return value;
    throw MalformedMessage(fmt::format("a control message about the job's store of kind {}", static_cast<int>(value)));
  }
  CreationName name() {
    const std::uint64_t list = in_.u64();
    return {list, in_.u64()};
  }

  void operator()(Suspect& m) { m.accused = rank(), m.is_witness = flag(), m.reason = text(), m.is_certain = flag(); }
  void operator()(Alive& m) { m.away_ms = in_.u32(); }
  void operator()(Lost& m) { m.rank = rank(), m.cause = cause(); }
  void operator()(Proposal& m) { m.group = in_.u64(), m.epoch = in_.u32(), m.cause = cause(); }
  void operator()(Broken& m) { m.group = in_.u64(), m.epoch = in_.u32(), m.cause = cause(); }
  void operator()(Goodbye& m) {
    m.more = flag(), m.has_store = flag();
    const std::uint32_t count = in_.u32();
    if (count > positions_max) throw MalformedMessage(fmt::format("a goodbye with {} positions", count));
    m.positions.resize(count);
    for (Position& each : m.positions) {
      each.group = in_.u64(), each.epoch = in_.u32(), each.calls = in_.u64(), each.history = in_.u64();
      each.refused = in_.u64(), each.is_known = flag();
    }
  }
  void operator()(Departed& m) { m.rank = rank(); }
  void operator()(Refused& m) { m.group = in_.u64(), m.epoch = in_.u32(), m.sequence = in_.u64(), m.text = text(); }
  void operator()(StoreMoved& m) { m.keeper = rank(); }

  void operator()(Probe& m) { m.id = in_.u64(), m.question = in_.blob(blob_bytes_max); }
  void operator()(ProbeAnswer& m) { m.id = in_.u64(), m.answer = in_.blob(blob_bytes_max); }
  void operator()(Join& m) {
    m.name = name(), m.member_count = in_.u32(), m.members = ranks();
    if (m.member_count > world_size_ || m.member_count < m.members.size()) {
      throw MalformedMessage(fmt::format("a group of {} members in a world of {}", m.member_count, world_size_));
    }
  }
  void operator()(Missing& m) { m.name = name(), m.cause = cause(); }
  void operator()(Made& m) { m.name = name(), m.group = in_.u64(), m.blob = in_.blob(blob_bytes_max); }
  void operator()(Taken& m) { m.name = name(); }
  void operator()(GaveUp& m) { m.name = name(), m.cause = cause(); }
  void operator()(CalledOff& m) { m.name = name(), m.cause = cause(); }
  void operator()(StoreAsked& m) {
    m.kind = kind(store::Request::Kind::set, store::Request::Kind::cancel), m.id = in_.u64(), m.slot = in_.u32(),
    m.key = in_.string(store_bytes_max);
    m.has_expected = flag(), m.expected = in_.string(store_bytes_max), m.value = in_.string(store_bytes_max);
    m.amount = in_.i64();
  }
  void operator()(StoreAnswered& m) {
    m.waits = flag(), m.kind = kind(store::Reply::Kind::value, store::Reply::Kind::refused);
    m.id = in_.u64(), m.value = in_.string(store_bytes_max);
    m.number = in_.i64();
  }
  void operator()(StoreOffered& m) { m.parts = in_.u32(); }
  void operator()(StoreFetched& m) { m.taken = in_.u32(); }
  void operator()(StorePart& m) { m.part = in_.u32(), m.bytes = in_.blob(blob_bytes_max); }

  void operator()(Beat& m) { m.lag_ms = in_.u32(); }
  void operator()(Link&) {}
  void operator()(Seen&) {}
  void operator()(Flooded& m) { m.origin = rank(), m.number = in_.u64(), m.body = any<FloodBody>(); }
  void operator()(Routed& m) { m.origin = rank(), m.to = rank(), m.hops_left = in_.u8(), m.body = any<RoutedBody>(); }

  // One byte tells which alternative follows.
  template <class Variant>
  Variant any() {
    const std::uint8_t index = in_.u8();
    if (index >= std::variant_size_v<Variant>) {
      throw MalformedMessage(fmt::format("a control message of unknown kind {}", index));
    }
    Variant value = alternative<Variant>(index, std::make_index_sequence<std::variant_size_v<Variant>>());
    std::visit(*this, value);
    return value;
  }
  void expect_end() const { in_.expect_end(); }

 private:
  template <class Variant, std::size_t... index>
  static Variant alternative(std::size_t wanted, std::index_sequence<index...>) {
    Variant value;
    ((index == wanted ? static_cast<void>(value.template emplace<index>()) : static_cast<void>(0)), ...);
    return value;
  }

  ByteReader in_;
  std::uint32_t world_size_;
};

}  // namespace

std::vector<std::byte> encode(const Message& message) {
  Writer writer;
  writer.u8(message.index());
  std::visit(writer, message);
  return std::move(writer.out_).take();
}

Message decode(std::span<const std::byte> bytes, int world_size) {
  Reader reader(bytes, world_size);
  Message message = reader.any<Message>();
  reader.expect_end();
  return message;
}

}  // namespace tutti::control
