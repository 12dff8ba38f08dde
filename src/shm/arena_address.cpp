// arena_address.cpp: an arena's address as text, for the exchange between ranks.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>

#include "base/bytes.hpp"
#include "shm/arena.hpp"

namespace tutti::shm {
namespace {

constexpr std::string_view title = "arena/1";

template <class T>
T next_number(std::string_view& rest) {
  T value{};
  const auto [end, error] = std::from_chars(rest.begin(), rest.end(), value);
  if (error != std::errc() || end == rest.end() || *end != ' ') {
    throw MalformedMessage("the address of a rank's shared memory cannot be read; do all ranks run the same version?");
  }
  rest.remove_prefix(static_cast<std::size_t>(end - rest.begin()) + 1);
  return value;
}

}  // namespace

// The host id comes last: it may be any text.
std::string ArenaAddress::to_text() const {
  return fmt::format("{} {} {} {} {} {} {} {}", title, process, descriptor, bytes, token, base, process_namespace,
                     host_id);
}

ArenaAddress ArenaAddress::from_text(std::string_view text) {
  if (!text.starts_with(title) || !text.substr(title.size()).starts_with(' ')) {
    throw MalformedMessage("not the address of a rank's shared memory; do all ranks run the same version?");
  }
  text.remove_prefix(title.size() + 1);
  ArenaAddress address;
  address.process = next_number<std::int64_t>(text);
  address.descriptor = next_number<std::int32_t>(text);
  address.bytes = next_number<std::uint64_t>(text);
  address.token = next_number<std::uint64_t>(text);
  address.base = next_number<std::uint64_t>(text);
  address.process_namespace = next_number<std::uint64_t>(text);
  address.host_id = text;
  return address;
}

}  // namespace tutti::shm
