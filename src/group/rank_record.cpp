// rank_record.cpp: a rank's record as bytes, and back.
// SPDX-License-Identifier: Apache-2.0
#include "group/rank_record.hpp"

#include <span>

#include "base/bytes.hpp"
#include "base/printable.hpp"

namespace tutti {

namespace {
constexpr std::size_t record_text_limit = 64 << 10;
}  // namespace

std::string encode(const RankRecord& record) {
  ByteWriter writer;
  writer.string(record.address)
      .string(record.host)
      .u32(static_cast<std::uint32_t>(record.node))
      .u64(record.world)
      .string(record.table)
      .string(record.backend)
      .string(record.memory)
      .string(record.process)
      .string(record.ucx);
  return {reinterpret_cast<const char*>(writer.data().data()), writer.size()};
}

RankRecord decode_rank_record(std::string_view text) {
  ByteReader reader(std::as_bytes(std::span(text)), "a rank's record at init");
  RankRecord record;
  record.address = reader.string(record_text_limit);
  record.host = printable_text(reader.string(record_text_limit));
  record.node = static_cast<int>(reader.u32());
  record.world = reader.u64();
  record.table = reader.string(record_text_limit);
  record.backend = reader.string(record_text_limit);
  record.memory = reader.string(record_text_limit);
  record.process = reader.string(record_text_limit);
  record.ucx = reader.string(record_text_limit);
  reader.expect_end();
  return record;
}

}  // namespace tutti
