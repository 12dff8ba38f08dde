// own_file.cpp: writes a file that only its user may read.
// SPDX-License-Identifier: Apache-2.0
#include "record/own_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <tutti/error.hpp>

#include "base/unique_fd.hpp"

namespace tutti::record {

void write_own_file(const std::string& path, std::string_view text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  while (file && !text.empty()) {
    const ssize_t bytes = ::write(file.get(), text.data(), text.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(bytes));
  }
  if (!file || !text.empty()) throw Error(fmt::format("{} cannot be written: {}", path, std::strerror(errno)));
}

}  // namespace tutti::record
