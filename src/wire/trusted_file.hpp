// trusted_file.hpp: opens a file whose contents decide which processes this one trusts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string_view>

#include "base/unique_fd.hpp"

namespace tutti::wire {

// Opens a file for reading so that no other user decides which file that is: the file itself is no symbolic link, and a
// link on the way to it is followed only if root or this user made it. Without a descriptor, errno says why.
// AuthenticationError names a link that another user planted.
UniqueFd open_trusted(const std::filesystem::path& path);

// The same walk to the folder of a file that is to be written there.
UniqueFd open_trusted_folder(const std::filesystem::path& folder);

// Which permissions of others spoil a file.
enum class Others : mode_t { may_not_write = 022, may_not_read_or_write = 077 };

// AuthenticationError unless the open file is a regular one of this user's or root's, without those permissions.
// `what` names it: "the key file".
void check_trusted(int file, const std::filesystem::path& path, std::string_view what, Others others);

}  // namespace tutti::wire
