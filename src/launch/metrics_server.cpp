// metrics_server.cpp: as much of HTTP as Prometheus and curl need, one connection after the other.
// SPDX-License-Identifier: Apache-2.0
#include "launch/metrics_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/made_fd.hpp"
#include "base/start_thread.hpp"
#include "launch/options.hpp"

namespace tutti::launch {
namespace {

constexpr auto request_limit = std::chrono::seconds(2);
constexpr std::size_t request_bytes_max = 8192;

int milliseconds_until(std::chrono::steady_clock::time_point limit) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

/// Up to the blank line; empty: it did not come in time.
std::string request_from(int connection) {
  const auto limit = std::chrono::steady_clock::now() + request_limit;
  std::string request;
  std::array<char, 2048> buffer{};
  while (request.find("\r\n\r\n") == std::string::npos && request.size() < request_bytes_max) {
    pollfd watched{.fd = connection, .events = POLLIN, .revents = 0};
    if (poll(&watched, 1, milliseconds_until(limit)) != 1) return {};
    const ssize_t bytes = recv(connection, buffer.data(), buffer.size(), 0);
    if (bytes <= 0) return {};
    request.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
  return request;
}

void send_all(int connection, std::string_view text) {
  const auto limit = std::chrono::steady_clock::now() + request_limit;
  while (!text.empty()) {
    pollfd watched{.fd = connection, .events = POLLOUT, .revents = 0};
    if (poll(&watched, 1, milliseconds_until(limit)) != 1) return;
    const ssize_t bytes = send(connection, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (bytes <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(bytes));
  }
}

std::string response(std::string_view status, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n"
      "Connection: close\r\n\r\n{}",
      status, body.size(), body);
}

}  // namespace

MetricsServer::MetricsServer(int port, std::function<std::string()> page)
    : page_(std::move(page)),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      stop_(made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "an eventfd")) {
  const int yes = 1;
  setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 || listen(listener_.get(), 16) != 0)
    throw UsageError(fmt::format("--metrics {}: the port cannot be used on 127.0.0.1: {}; 0 takes a free one", port,
                                 std::strerror(errno)));
  getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  thread_ = start_thread("that serves --metrics", [this] { serve(); });
}

MetricsServer::~MetricsServer() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t bytes = write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void MetricsServer::serve() {
  std::array<pollfd, 2> watched = {
      {{.fd = listener_.get(), .events = POLLIN, .revents = 0}, {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
  while (true) {
    if (poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
    if (watched[1].revents != 0) return;
    const UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection) answer(connection.get());
  }
}

void MetricsServer::answer(int connection) const {
  const std::string request = request_from(connection);
  if (request.empty()) return;
  const bool is_ours = request.starts_with("GET /metrics ") || request.starts_with("GET / ");
  send_all(connection, is_ours ? response("200 OK", page_()) : response("404 Not Found", "GET /metrics\n"));
}

}  // namespace tutti::launch
