// printable.hpp: makes foreign text safe for a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tutti {

/// Escapes control characters, characters that change the direction of writing, and bytes that are not UTF-8 as \x1b
/// and the like: text from a peer, a file or the environment must not control the reader's terminal. `allowed` control
/// characters stay.
std::string printable_text(std::string_view text, std::string_view allowed = "");

}  // namespace tutti
