// pmi.cpp: speaking PMI-1.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/pmi.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include <tutti/error.hpp>

#include "wire/socket.hpp"

namespace tutti::rendezvous {
namespace {

constexpr std::size_t line_bytes_max = 64 * 1024;

[[noreturn]] void throw_pmi(std::string_view command, std::string_view why) {
  throw RendezvousError(
      fmt::format("the launcher did not answer \"{}\" over PMI: {}; check that the program is started "
                  "by the launcher itself and that the launcher still runs",
                  command.substr(0, command.find(' ')), why));
}

std::string error_text() { return std::generic_category().message(errno); }

}  // namespace

std::string_view pmi_field(std::string_view line, std::string_view name) {
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=')
      return word.substr(name.size() + 1);
    begin = end + 1;
  }
  return {};
}

void PmiClient::init(TimePoint deadline) {
  (void)ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", deadline);
}

std::string PmiClient::kvs_name(TimePoint deadline) {
  if (kvs_name_.empty()) kvs_name_ = pmi_field(ask("cmd=get_my_kvsname", "my_kvsname", deadline), "kvsname");
  if (kvs_name_.empty()) throw_pmi("cmd=get_my_kvsname", "it has no key-value space");
  return kvs_name_;
}

void PmiClient::put(std::string_view key, std::string_view value, TimePoint deadline) {
  (void)ask(fmt::format("cmd=put kvsname={} key={} value={}", kvs_name(deadline), key, value), "put_result", deadline);
}

void PmiClient::barrier(TimePoint deadline) { (void)ask("cmd=barrier_in", "barrier_out", deadline); }

std::string PmiClient::get(std::string_view key, TimePoint deadline) {
  const std::string line =
      ask(fmt::format("cmd=get kvsname={} key={}", kvs_name(deadline), key), "get_result", deadline);
  return std::string(pmi_field(line, "value"));
}

void PmiClient::finalize(TimePoint deadline) { (void)ask("cmd=finalize", "finalize_ack", deadline); }

std::string PmiClient::ask(std::string_view command, std::string_view answer, TimePoint deadline) {
  const std::string line = std::string(command) + '\n';
  for (std::size_t sent = 0; sent < line.size();) {
    if (wire::wait_for(fd_, POLLOUT, deadline) == 0) throw_pmi(command, "it takes no bytes");
    const ssize_t bytes = write(fd_, line.data() + sent, line.size() - sent);
    if (bytes < 0 && errno != EINTR && errno != EAGAIN) throw_pmi(command, error_text());
    if (bytes > 0) sent += static_cast<std::size_t>(bytes);
  }
  std::string reply = read_line(command, deadline);
  const std::string_view code = pmi_field(reply, "rc");
  if (pmi_field(reply, "cmd") != answer) throw_pmi(command, fmt::format("it said \"{}\"", reply.substr(0, 200)));
  if (!code.empty() && code != "0") throw_pmi(command, fmt::format("it refused: \"{}\"", reply.substr(0, 200)));
  return reply;
}

std::string PmiClient::read_line(std::string_view command, TimePoint deadline) {
  for (;;) {
    if (const auto end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (received_.size() > line_bytes_max) throw_pmi(command, "its answer has no end");
    if (wire::wait_for(fd_, POLLIN, deadline) == 0) throw_pmi(command, "no answer in time");
    std::array<char, 4096> bytes;
    const ssize_t got = read(fd_, bytes.data(), bytes.size());
    if (got == 0) throw_pmi(command, "it hung up");
    if (got < 0 && errno != EINTR && errno != EAGAIN) throw_pmi(command, error_text());
    if (got > 0) received_.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace tutti::rendezvous
