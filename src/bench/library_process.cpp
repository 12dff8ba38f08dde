// library_process.cpp: a process of a job under measurement.
// SPDX-License-Identifier: Apache-2.0
#include "bench/library_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <filesystem>
#include <system_error>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "launch/spawn.hpp"

namespace tutti::bench {

namespace {

constexpr int goodbye_ms = 3000;  // MPI_Finalize of a loaded machine
constexpr int terminate_ms = 2000;

// The pointers that execve wants; the strings must outlive them.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_of(const ProcessStart& start) {
  Environment environment = Environment::of_process();
  for (const auto& [name, value] : start.environment) environment.set(name, value);
  std::vector<std::string> texts;
  for (const auto& [name, value] : environment.variables()) texts.push_back(name + "=" + value);
  return texts;
}

UniqueFd open_or_throw(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!fd) throw Error(fmt::format("cannot open {}: {}", path, std::generic_category().message(errno)));
  return fd;
}

}  // namespace

LibraryProcess::LibraryProcess(const ProcessStart& start) {
  std::vector<std::string> arguments = start.arguments, environment = environment_of(start);
  const std::string program = find_program(arguments.at(0));
  const UniqueFd nothing = open_or_throw("/dev/null", O_RDONLY);
  const UniqueFd log = open_or_throw(start.log_path, O_WRONLY | O_CREAT | O_APPEND);
  const auto words = pointers_to(arguments), variables = pointers_to(environment);
  launch::SpawnRequest request{.path = program.c_str(),
                               .words = words.data(),
                               .environment = variables.data(),
                               .input = nothing.get(),
                               .output = log.get(),
                               .error = log.get()};
  sigemptyset(&request.signals.blocked);
  getrlimit(RLIMIT_NOFILE, &request.descriptors);
  const launch::Spawned spawned = launch::spawn(request);
  if (spawned.error != 0) {
    throw Error(fmt::format("cannot start {}: {}", arguments[0], std::generic_category().message(spawned.error)));
  }
  pid_ = spawned.id;
  pid_fd_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (!pid_fd_) throw Error("this kernel has no pidfd_open (Linux 5.3 or later has), which tutti bench needs");
}

LibraryProcess::LibraryProcess(LibraryProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pid_fd_(std::move(other.pid_fd_)) {}

bool LibraryProcess::ends_within(int milliseconds) {
  pollfd ended{.fd = pid_fd_.get(), .events = POLLIN, .revents = 0};
  return poll(&ended, 1, milliseconds) > 0;
}

LibraryProcess::~LibraryProcess() {
  if (pid_ < 0) return;
  if (!ends_within(goodbye_ms)) {
    kill(-pid_, SIGTERM);
    ends_within(terminate_ms);
  }
  kill(-pid_, SIGKILL);  // whatever is left of its group; the number is ours until waitpid
  waitpid(pid_, nullptr, 0);
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const std::string path = Environment::of_process().get("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string file = path.substr(begin, end - begin) + "/" + name;
    if (std::filesystem::is_regular_file(file) && access(file.c_str(), X_OK) == 0) return file;
    begin = end + 1;
  }
  return "";
}

}  // namespace tutti::bench
