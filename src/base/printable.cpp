// printable.cpp: decodes UTF-8 character by character and escapes what a terminal would interpret.
// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace tutti {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: no UTF-8
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 && lead < 0xf5   ? 4
                            : lead >= 0xe0 && lead < 0xf0 ? 3
                            : lead >= 0xc2 && lead < 0xe0 ? 2
                                                          : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};  // a longer form than needed is none
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < lowest[bytes] || code > 0x10ffff || surrogate ? Character{} : Character{code, bytes};
}

bool is_harmless(std::uint32_t code, std::string_view allowed) {
  if (code < 0x20) return allowed.find(static_cast<char>(code)) != std::string_view::npos;
  if (code >= 0x7f && code < 0xa0) return false;  // delete, and the control characters of ISO 6429's second set
  const bool turns = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return !turns && code != 0x2028 && code != 0x2029;
}

}  // namespace

std::string printable_text(std::string_view text, std::string_view allowed) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_of(text);
    const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
    if (character.bytes > 0 && is_harmless(character.code, allowed)) {
      result += text.substr(0, bytes);
    } else {
      for (const char c : text.substr(0, bytes))
        fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(bytes);
  }
  return result;
}

}  // namespace tutti
