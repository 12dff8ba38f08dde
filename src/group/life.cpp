// life.cpp: reading /proc/PID/stat.
// SPDX-License-Identifier: Apache-2.0
#include "group/life.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

#include "base/system_files.hpp"

namespace tutti {
namespace {

using control::Life;

// /proc may hide the processes of other users (hidepid). A signal that is not allowed shows that there is one.
bool is_gone(std::int64_t pid) { return kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH; }

bool is_visible(const ProcessIdentity& process, const ProcessIdentity& self) {
  return self.is_known() && process.is_known() && process.machine == self.machine &&
         process.pid_namespace == self.pid_namespace;
}

}  // namespace

ProcessIdentity own_identity() {
  ProcessIdentity self;
  self.machine = boot_id();
  struct stat name_space {};
  const auto status = parse_process_status(read_system_file("/proc/self/stat").value_or(""));
  if (self.machine.empty() || !status || stat("/proc/self/ns/pid", &name_space) != 0) return {};
  if (status->id != getpid())
    return {};  // /proc is that of another PID namespace: it has other processes under these ids
  self.pid_namespace = name_space.st_ino;
  self.pid = getpid();
  self.started_ticks = status->started_ticks;
  return self;
}

std::string to_text(const ProcessIdentity& identity) {
  return fmt::format("{} {} {} {}", identity.machine, identity.pid_namespace, identity.pid, identity.started_ticks);
}

ProcessIdentity identity_from_text(std::string_view text) {
  std::istringstream fields{std::string(text)};
  ProcessIdentity identity;
  fields >> identity.machine >> identity.pid_namespace >> identity.pid >> identity.started_ticks;
  return fields ? identity : ProcessIdentity{};
}

Life life_of(const ProcessIdentity& process, const ProcessIdentity& self) {
  if (!is_visible(process, self)) return Life::unknown;
  const auto status = process_status(static_cast<pid_t>(process.pid));
  if (!status) return is_gone(process.pid) ? Life::ended : Life::unknown;
  if (status->started_ticks != process.started_ticks) return Life::ended;
  switch (status->state) {
    case 'Z':  // of the first thread: where it has ended by itself, others may go on
      return status->threads > 1 ? Life::running : Life::ended;
    case 'X':
    case 'x': return Life::ended;
    case 'T':
    case 't': return Life::stopped;
    default: return Life::running;
  }
}

}  // namespace tutti
