// line_socket.hpp: lines of text over a Unix socket, between the coordinator and a rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"

namespace tutti::bench {

class LineSocket {
 public:
  explicit LineSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  static LineSocket connect(const std::string& path);
  /// A socket that waits for connections, for the user of this process only if the folder is.
  static UniqueFd listen(const std::string& path, int backlog);

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Blocks; nothing once the other side has hung up.
  std::optional<std::string> read_line();
  /// Takes what has arrived, without blocking; false once the other side has hung up.
  bool receive();
  /// A whole line out of what has arrived.
  std::optional<std::string> take_line();
  void write_line(std::string_view line);

 private:
  UniqueFd fd_;
  std::string arrived_{};
};

}  // namespace tutti::bench
