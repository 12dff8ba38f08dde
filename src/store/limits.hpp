// limits.hpp: how large keys and values may be, and how errors speak of them; the same for every store.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <tutti/clock.hpp>

namespace tutti::store {

inline constexpr std::size_t key_bytes_max = std::size_t{4} << 10;
inline constexpr std::size_t value_bytes_max = std::size_t{64} << 20;

// InvalidArgument for what is too large; before anything moves.
void check_key(std::string_view key);
void check_value(std::string_view key, std::string_view value);

// 'key' in quotes, what cannot be printed escaped and its end cut off if it is long: for errors.
std::string shown_key(std::string_view key);

// `store` names the store: "the store at 10.0.0.1:29500".
[[noreturn]] void throw_timeout(std::string_view store, std::string_view call, std::string_view key,
                                std::string_view why);

}  // namespace tutti::store
