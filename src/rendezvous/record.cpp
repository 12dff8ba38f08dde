// record.cpp: the record as one line of text.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include <tutti/error.hpp>

namespace tutti::rendezvous {
namespace {

constexpr std::string_view version = "tutti-note-1";
constexpr std::size_t record_bytes_max = 1024;
constexpr std::size_t nonce_digits = 32;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_nonce(std::string_view text) {
  return text.size() == nonce_digits &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

}  // namespace

RendezvousRecord RendezvousRecord::by(std::string_view writer) {
  std::string nonce = make_nonce();
  return {.where = {}, .nonce = std::move(nonce), .secret = {}, .writer = std::string(writer)};
}

std::string RendezvousRecord::text() const {
  return fmt::format("{},{},{},{},{}", version, where.text(), nonce, secret ? secret->hex() : "-", printable(writer));
}

std::optional<RendezvousRecord> RendezvousRecord::parse(std::string_view text) {
  if (text.size() > record_bytes_max) return std::nullopt;
  const auto parts = split(text, ',');
  if (parts.size() != 5 || parts[0] != version || !is_nonce(parts[2])) return std::nullopt;
  RendezvousRecord record;
  record.nonce = parts[2];
  record.writer = printable(parts[4]);  // as text() writes it: what else stands there does not reach a terminal
  try {
    record.where = wire::HostPort::parse(parts[1]);
    if (parts[3] != "-") record.secret = wire::Secret::from_hex(parts[3]);
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
  std::ranges::replace(record.writer, '_', ' ');
  return record;
}

std::string printable(std::string_view text) {
  std::string result(text.substr(0, 200));
  std::ranges::replace_if(
      result, [](unsigned char c) { return !std::isalnum(c) && c != '.' && c != '-' && c != ':'; }, '_');
  return result;
}

std::string make_nonce() {
  std::array<std::byte, nonce_digits / 2> bytes{};
  wire::fill_random(bytes);
  std::string text;
  for (const std::byte byte : bytes) fmt::format_to(std::back_inserter(text), "{:02x}", std::to_integer<int>(byte));
  return text;
}

}  // namespace tutti::rendezvous
