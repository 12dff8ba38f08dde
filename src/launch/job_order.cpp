// job_order.cpp: encodings of orders and facts.
// SPDX-License-Identifier: Apache-2.0
#include "launch/job_order.hpp"

#include "base/bytes.hpp"

namespace tutti::launch {
namespace {

constexpr std::size_t text_bytes_max = std::size_t{1} << 20;  // of one text: Linux takes no longer word or variable
constexpr std::uint32_t entries_max = 1 << 20;                // of one list

void write_texts(ByteWriter& writer, const std::vector<std::string>& texts) {
  writer.u32(static_cast<std::uint32_t>(texts.size()));
  for (const std::string& text : texts) writer.string(text);
}

void write_pairs(ByteWriter& writer, const std::vector<std::pair<std::string, std::string>>& pairs) {
  writer.u32(static_cast<std::uint32_t>(pairs.size()));
  for (const auto& [name, value] : pairs) writer.string(name).string(value);
}

std::string read_text(ByteReader& reader) { return reader.string(text_bytes_max); }
int read_int(ByteReader& reader) { return static_cast<int>(reader.i64()); }
Duration read_time(ByteReader& reader) { return Duration(reader.i64()); }

std::uint32_t read_count(ByteReader& reader) {
  const std::uint32_t count = reader.u32();
  if (count > entries_max) throw MalformedMessage("a list in an order for an agent is too long");
  return count;
}

template <class Read>
auto read_list(ByteReader& reader, Read read) {
  std::vector<decltype(read(reader))> list;
  for (std::uint32_t left = read_count(reader); left > 0; --left) list.push_back(read(reader));
  return list;
}

std::pair<std::string, std::string> read_pair(ByteReader& reader) {
  std::string name = read_text(reader);
  return {std::move(name), read_text(reader)};
}

void write_options(ByteWriter& writer, const RunOptions& options) {
  writer.string(options.backend).u8(options.binding == Binding::core).i64(options.master_port);
  write_pairs(writer, options.variables);
  writer.u8(options.is_module).u8(options.is_never_python).i64(options.grace.count());
  writer.string(options.python).string(options.program);
  write_texts(writer, options.arguments);
}

RunOptions read_run_options(ByteReader& reader) {
  RunOptions options;
  options.backend = read_text(reader);
  options.binding = reader.u8() != 0 ? Binding::core : Binding::none;
  options.master_port = read_int(reader);
  options.variables = read_list(reader, read_pair);
  options.is_module = reader.u8() != 0;
  options.is_never_python = reader.u8() != 0;
  options.grace = read_time(reader);
  options.python = read_text(reader);
  options.program = read_text(reader);
  options.arguments = read_list(reader, read_text);
  return options;
}

void write_facts(ByteWriter& writer, const HostFacts& facts) {
  writer.i64(facts.ranks).string(facts.token);
  write_texts(writer, facts.addresses);
}

HostFacts read_facts(ByteReader& reader) {
  HostFacts facts;
  facts.ranks = read_int(reader);
  facts.token = read_text(reader);
  facts.addresses = read_list(reader, read_text);
  return facts;
}

Reach read_reach(ByteReader& reader) {
  Reach reach;
  reach.answered = read_list(reader, [](ByteReader& from) { return from.u8() != 0; });
  reach.problem = read_text(reader);
  return reach;
}

}  // namespace

std::vector<std::byte> encode(const JobOrder& order) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(order.hosts.size()));
  for (const Host& host : order.hosts) writer.string(host.name).i64(host.slots);
  writer.i64(order.fan_out).i64(order.silence.count()).i64(order.start_timeout.count());
  write_texts(writer, order.shell);
  writer.string(order.tuttirun).string(order.job).string(order.secret).i64(order.restart).string(order.folder);
  write_options(writer, order.options);
  write_pairs(writer, order.environment);
  return std::move(writer).take();
}

JobOrder decode_job_order(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, "an order for an agent");
  JobOrder order;
  order.hosts = read_list(reader, [](ByteReader& from) {
    std::string name = read_text(from);
    return Host{.name = std::move(name), .slots = read_int(from)};
  });
  order.fan_out = read_int(reader);
  order.silence = read_time(reader);
  order.start_timeout = read_time(reader);
  order.shell = read_list(reader, read_text);
  order.tuttirun = read_text(reader);
  order.job = read_text(reader);
  order.secret = read_text(reader);
  order.restart = read_int(reader);
  order.folder = read_text(reader);
  order.options = read_run_options(reader);
  order.environment = read_list(reader, read_pair);
  reader.expect_end();
  if (order.fan_out < 1) throw MalformedMessage("an order for an agent has no fan-out");
  return order;
}

std::vector<std::byte> encode(const HostFacts& facts) {
  ByteWriter writer;
  write_facts(writer, facts);
  return std::move(writer).take();
}

HostFacts decode_host_facts(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, "the facts of a host");
  HostFacts facts = read_facts(reader);
  reader.expect_end();
  return facts;
}

std::vector<std::byte> encode(const ReachTable& table) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(table.size()));
  for (const HostFacts& facts : table) write_facts(writer, facts);
  return std::move(writer).take();
}

ReachTable decode_reach_table(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, "a table of hosts");
  ReachTable table = read_list(reader, read_facts);
  reader.expect_end();
  return table;
}

std::vector<std::byte> encode(const ReachReport& report) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(report.size()));
  for (const Reach& reach : report) {
    writer.u32(static_cast<std::uint32_t>(reach.answered.size()));
    for (const bool answered : reach.answered) writer.u8(answered);
    writer.string(reach.problem);
  }
  return std::move(writer).take();
}

ReachReport decode_reach_report(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, "a report of reached hosts");
  ReachReport report = read_list(reader, read_reach);
  reader.expect_end();
  return report;
}

std::vector<std::byte> encode(const StartOrder& order) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(order.ranks.size()));
  for (const int ranks : order.ranks) writer.i64(ranks);
  write_texts(writer, order.interfaces);
  writer.string(order.master_address).i64(order.master_port).string(order.store);
  return std::move(writer).take();
}

StartOrder decode_start_order(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, "an order to start");
  StartOrder order;
  order.ranks = read_list(reader, read_int);
  order.interfaces = read_list(reader, read_text);
  order.master_address = read_text(reader);
  order.master_port = read_int(reader);
  order.store = read_text(reader);
  reader.expect_end();
  return order;
}

}  // namespace tutti::launch
