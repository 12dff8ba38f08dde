// agent_links.cpp: starts agents, passes frames on, notices links that break.
// SPDX-License-Identifier: Apache-2.0
#include "launch/agent_links.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <tutti/error.hpp>

#include "base/made_fd.hpp"
#include "base/printable.hpp"
#include "launch/program.hpp"
#include "launch/remote_shell.hpp"
#include "wire/socket.hpp"

namespace tutti::launch {
namespace {

constexpr std::size_t error_text_bytes_max = 4096;
// For a remote shell whose output has ended to end itself, so that its status can be reported.
constexpr Duration shell_end_time = std::chrono::seconds(2);

struct PipeEnds {
  UniqueFd reader, writer;
};

PipeEnds make_shell_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(fmt::format("cannot make the pipes of a remote shell: {}", describe_system_error(errno)));
  return {.reader = UniqueFd(ends[0]), .writer = UniqueFd(ends[1])};
}

// Without the secret: ssh may be told by its configuration to pass variables on.
std::vector<std::string> shell_environment() {
  std::vector<std::string> block;
  for (char** entry = environ; *entry; ++entry) {
    if (!std::string_view(*entry).starts_with(fmt::format("{}=", secret_variable))) block.emplace_back(*entry);
  }
  return block;
}

std::vector<char*> words_for_exec(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

AgentLinks::~AgentLinks() { kill(); }

std::string AgentLinks::name_of(int node) const { return order_.hosts[static_cast<std::size_t>(node - 1)].name; }

// Only tuttirun itself knows that it is on the host that people mean by "localhost".
std::vector<std::string> AgentLinks::command_for(const std::string& host) const {
  if (node_ == 0 && is_own_name(host)) return {order_.tuttirun, "--agent"};
  return remote_command(order_.shell, host, order_.tuttirun);
}

void AgentLinks::start() {
  for (const int child : tree_.children_of(node_)) start_one(child);
}

void AgentLinks::start_one(int child) {
  std::vector<std::string> texts = command_for(name_of(child));
  std::vector<std::string> block = shell_environment();
  const std::vector<char*> words = words_for_exec(texts);
  const std::vector<char*> environment = words_for_exec(block);
  PipeEnds in = make_shell_pipe(), out = make_shell_pipe(), errors = make_shell_pipe();
  const std::string path = find_command(texts.front(), Environment::of_process());
  SpawnRequest request{.path = path.c_str(),
                       .words = words.data(),
                       .environment = environment.data(),
                       .input = in.reader.get(),
                       .output = out.writer.get(),
                       .error = errors.writer.get()};
  sigemptyset(&request.signals.blocked);
  getrlimit(RLIMIT_NOFILE, &request.descriptors);
  const Spawned spawned = spawn(request);
  Link& link = links_.emplace_back();
  link.node = child;
  link.started_at = std::chrono::steady_clock::now();
  if (spawned.error != 0) {
    lose(link, fmt::format("{} cannot be started: {}; give another remote shell with --ssh", texts.front(),
                           std::generic_category().message(spawned.error)));
    links_.pop_back();
    return;
  }
  link.process = spawned.id;
  link.pipe = FramePipe(std::move(out.reader), std::move(in.writer));
  link.pipe.expect_banner();
  link.errors = std::move(errors.reader);
  fcntl(link.errors.get(), F_SETFL, O_NONBLOCK);
}

void AgentLinks::watch(std::vector<pollfd>& into) const {
  for (const Link& link : links_) {
    into.push_back({.fd = link.pipe.in(), .events = POLLIN, .revents = 0});
    if (link.pipe.has_unsent()) into.push_back({.fd = link.pipe.out(), .events = POLLOUT, .revents = 0});
  }
}

TimePoint AgentLinks::next_timer() const {
  TimePoint next = TimePoint::max();
  for (const Link& link : links_) {
    next = std::min(next, link.is_known ? link.pipe.heard() + order_.silence : link.started_at + order_.start_timeout);
    if (link.is_known) next = std::min(next, link.pipe.said() + beat_interval);
  }
  return next;
}

void AgentLinks::serve() {
  for (auto link = links_.begin(); link != links_.end();) {
    const std::string problem = serve_link(*link, std::chrono::steady_clock::now());
    if (problem.empty()) {
      ++link;
      continue;
    }
    lose(*link, problem);
    link = links_.erase(link);
  }
}

std::string AgentLinks::serve_link(Link& link, TimePoint now) {
  const bool is_open = link.pipe.receive();
  read_errors(link);
  if (!link.is_known && link.pipe.banner()) {
    if (std::string problem = greet(link); !problem.empty()) return problem;
  }
  while (auto frame = link.pipe.next()) take(*std::move(frame));
  if (!is_open || !link.pipe.flush()) return explain(link);
  // Judged after everything that has come was read: a node that was late itself accuses nobody.
  if (link.is_known && now - link.pipe.heard() > order_.silence)
    return fmt::format("nothing was heard of it for {}", format_duration(order_.silence));
  if (!link.is_known && now - link.started_at > order_.start_timeout)
    return fmt::format("it did not answer within {}; try {} {} true, or a longer --start-timeout",
                       format_duration(order_.start_timeout), order_.shell.front(), name_of(link.node));
  if (link.is_known && now - link.pipe.said() >= beat_interval) link.pipe.send({.kind = FrameKind::beat});
  return "";
}

// "VERSION PATH": every host must run the same.
std::string AgentLinks::greet(Link& link) {
  const std::string& banner = *link.pipe.banner();
  const std::string version = banner.substr(0, banner.find(' '));
  if (version != TUTTI_VERSION)
    return fmt::format("it has version {} of Tutti ({}), and version {} starts the job; install the same on every host",
                       printable_text(version),
                       printable_text(banner.substr(std::min(banner.size(), version.size() + 1))), TUTTI_VERSION);
  link.is_known = true;
  link.pipe.send({.host = static_cast<std::uint32_t>(link.node - 1), .kind = FrameKind::order, .body = encode(order_)});
  return "";
}

void AgentLinks::take(Frame frame) {
  if (frame.kind == FrameKind::beat) return;
  if (frame.kind == FrameKind::gone || frame.kind == FrameKind::host_lost) gone_.insert(frame.host);
  frames_.push_back(std::move(frame));
}

std::optional<Frame> AgentLinks::next() {
  if (frames_.empty()) return std::nullopt;
  Frame frame = std::move(frames_.front());
  frames_.pop_front();
  return frame;
}

std::string AgentLinks::explain(Link& link) {
  const std::string host = name_of(link.node);
  const bool is_local = node_ == 0 && is_own_name(host);
  const int status = reap(link);
  read_errors(link);
  return explain_end({.command = is_local ? "its agent" : order_.shell.front(),
                      .host = host,
                      .errors = link.error_text,
                      .status = status,
                      .tuttirun = order_.tuttirun});
}

// Nothing is lost with a link of which every host has said that nothing is left there.
void AgentLinks::lose(Link& link, const std::string& why) {
  const auto lost = static_cast<std::uint32_t>(link.node - 1);
  for (std::uint32_t host = lost; host < order_.hosts.size(); ++host) {
    if (gone_.contains(host) || tree_.next_hop(node_, static_cast<int>(host) + 1) != link.node) continue;
    gone_.insert(host);
    const std::string reason =
        host == lost ? why : fmt::format("it was reached through host {}, which was lost: {}", name_of(link.node), why);
    frames_.push_back({.host = host, .kind = FrameKind::host_lost, .body = sentence(reason)});
  }
  if (link.process > 0) {
    ::kill(link.process, SIGKILL);
    waitpid(link.process, nullptr, 0);
  }
}

void AgentLinks::read_errors(Link& link) {
  std::array<char, 1024> buffer;
  while (link.errors) {
    const ssize_t bytes = read(link.errors.get(), buffer.data(), buffer.size());
    if (bytes == 0) link.errors.reset();
    if (bytes <= 0) return;
    link.error_text.append(buffer.data(), static_cast<std::size_t>(bytes));
    if (link.error_text.size() > error_text_bytes_max)
      link.error_text.erase(0, link.error_text.size() - error_text_bytes_max);
  }
}

int AgentLinks::reap(Link& link) {
  link.pipe.close_output();
  int status = 0;
  const TimePoint deadline = std::chrono::steady_clock::now() + shell_end_time;
  while (waitpid(link.process, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) ::kill(link.process, SIGKILL);
    poll(nullptr, 0, 5);
  }
  link.process = -1;
  return status;
}

void AgentLinks::send(const Frame& frame) {
  const int target = frame.host == every_host ? -1 : tree_.next_hop(node_, static_cast<int>(frame.host) + 1);
  for (Link& link : links_) {
    if (link.is_known && (frame.host == every_host || link.node == target)) link.pipe.send(frame);
  }
}

void AgentLinks::flush_until(TimePoint deadline) {
  for (Link& link : links_) link.pipe.flush_until(deadline);
}

void AgentLinks::kill() {
  for (Link& link : links_) {
    if (link.process <= 0) continue;
    ::kill(link.process, SIGKILL);
    waitpid(link.process, nullptr, 0);
  }
  links_.clear();
}

}  // namespace tutti::launch
