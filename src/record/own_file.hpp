// own_file.hpp: writes a file that only its user may read: the lines of a program are nobody else's business.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tutti::record {

/// Throws Error where it cannot be written whole.
void write_own_file(const std::string& path, std::string_view text);

}  // namespace tutti::record
