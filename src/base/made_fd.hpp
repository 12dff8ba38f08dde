// made_fd.hpp: descriptors that system calls make, and why one was not made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/unique_fd.hpp"

namespace tutti {

/// The system's words for an errno. Running out of descriptors is named as that, with the limit and what to do.
std::string describe_system_error(int error);

/// What a system call gave, which makes `what`. Throws Error, with errno's reason and what to try, if it gave none.
UniqueFd made(int fd, std::string_view what);

}  // namespace tutti
