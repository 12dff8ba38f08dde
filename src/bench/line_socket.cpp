// line_socket.cpp: lines of text over a Unix socket.
// SPDX-License-Identifier: Apache-2.0
#include "bench/line_socket.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <system_error>

#include <tutti/error.hpp>

namespace tutti::bench {

namespace {

[[noreturn]] void fail(std::string_view what, const std::string& path) {
  throw Error(fmt::format("benchmark: cannot {} {}: {}", what, path, std::generic_category().message(errno)));
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw InvalidArgument(fmt::format("benchmark: {} is too long for a socket; set TMPDIR to a shorter folder", path));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

UniqueFd open_socket(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) fail("open a socket for", path);
  return fd;
}

}  // namespace

LineSocket LineSocket::connect(const std::string& path) {
  const sockaddr_un address = address_of(path);
  UniqueFd fd = open_socket(path);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("connect to", path);
  return LineSocket(std::move(fd));
}

UniqueFd LineSocket::listen(const std::string& path, int backlog) {
  const sockaddr_un address = address_of(path);
  UniqueFd fd = open_socket(path);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("bind", path);
  if (::listen(fd.get(), backlog) != 0) fail("listen at", path);
  return fd;
}

std::optional<std::string> LineSocket::read_line() {
  while (true) {
    if (auto line = take_line()) return line;
    if (!receive()) return std::nullopt;
  }
}

bool LineSocket::receive() {
  char piece[4096];
  ssize_t got = 0;
  do got = ::recv(fd_.get(), piece, sizeof piece, 0);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  arrived_.append(piece, static_cast<std::size_t>(got));
  return true;
}

std::optional<std::string> LineSocket::take_line() {
  const std::size_t end = arrived_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = arrived_.substr(0, end);
  arrived_.erase(0, end + 1);
  return line;
}

void LineSocket::write_line(std::string_view line) {
  const std::string text = std::string(line) + '\n';
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t now = ::send(fd_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0)
      throw Error(fmt::format("benchmark: the other side is gone: {}", std::generic_category().message(errno)));
    sent += static_cast<std::size_t>(now);
  }
}

}  // namespace tutti::bench
