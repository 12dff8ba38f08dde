// printable.hpp: foreign text, made harmless for a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tutti {

/// Control characters, what turns the direction of writing, and bytes that are no UTF-8 become \x1b and the like: text from
/// a peer, a file or the environment must not move the cursor of whoever reads it. `allowed` control characters stay.
std::string printable_text(std::string_view text, std::string_view allowed = "");

}  // namespace tutti
