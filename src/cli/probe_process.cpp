// probe_process.cpp: what the kernel permits a process: shared memory, reading a peer's memory, reading the clock.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include <fmt/format.h>

#include "base/unique_fd.hpp"
#include "cli/files.hpp"
#include "cli/probes.hpp"
#include "shm/cross_memory.hpp"

namespace tutti::cli {

namespace {

std::string problem_with(const char* call) { return fmt::format("{}: {}", call, std::strerror(errno)); }

// Runs `attempt` in a child, which is to this process as a local peer: a process of the same user that is not an
// ancestor. The child starts when `prepare` is done here, and gives back 0, an errno, or `wrong_bytes`.
constexpr int wrong_bytes = 255;
template <class Prepare, class Attempt>
std::string try_in_child(const char* call, Prepare prepare, Attempt attempt) {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return problem_with("pipe");
  const UniqueFd go_read(ends[0]), go_write(ends[1]);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return problem_with("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(5);  // the deadline of the wait below
    char go = 0;
    _exit(read(go_read.get(), &go, 1) == 1 ? attempt(parent) : EIO);
  }
  prepare();
  if (write(go_write.get(), "!", 1) != 1) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (!WIFEXITED(status)) return fmt::format("{}: the process that tried got signal {}", call, WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  if (code == wrong_bytes) return fmt::format("{}: read something else than was there", call);
  return code == 0 ? "" : fmt::format("{}: {}", call, std::strerror(code));
}

// As the library makes its arenas, and as local peers map them.
std::string try_memfd() {
  constexpr std::size_t bytes = 1 << 16;
  const UniqueFd file(memfd_create("tutti-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return problem_with("memfd_create");
  if (fallocate(file.get(), 0, 0, bytes) != 0) return problem_with("fallocate of a memfd");
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return problem_with("mmap of a memfd");
  auto* last = static_cast<volatile char*>(memory) + bytes - 1;
  const bool sealed = fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0;
  std::string problem = sealed ? "" : problem_with("sealing a memfd");
  if (sealed) {
    const auto open_it = [&](pid_t parent) {
      const std::string path = fmt::format("/proc/{}/fd/{}", parent, file.get());
      const UniqueFd opened(open(path.c_str(), O_RDWR | O_CLOEXEC));
      char seen = 0;
      if (!opened || pread(opened.get(), &seen, 1, bytes - 1) != 1) return errno;
      return seen == 'T' ? 0 : wrong_bytes;
    };
    problem = try_in_child(
        "opening a local peer's memfd", [&] { *last = 'T'; }, open_it);
  }
  munmap(memory, bytes);
  return problem;
}

std::string try_cross_memory() {
  constexpr std::uint64_t expected = 0x7475747469000001;
  volatile std::uint64_t word = 0;
  // Written after the fork, so that the child's own copy is still 0.
  return try_in_child(
      "process_vm_readv", [&] { word = expected; },
      [&](pid_t parent) {
        std::uint64_t copy = 0;
        const int problem = shm::read_word(parent, reinterpret_cast<std::uint64_t>(&word), copy);
        if (problem != 0) return problem;
        return copy == expected ? 0 : wrong_bytes;
      });
}

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

SharedMemoryFacts probe_shared_memory(const Path& root) {
  SharedMemoryFacts facts{.memfd_problem = try_memfd(), .shm_problem = ""};
  const Path folder = root / "dev/shm";
  struct statvfs space {};
  if (statvfs(folder.c_str(), &space) != 0) {
    facts.shm_problem = fmt::format("{}: {}", folder.string(), std::strerror(errno));
    return facts;
  }
  const auto unit = static_cast<std::int64_t>(space.f_frsize);
  facts.shm_total = static_cast<std::int64_t>(space.f_blocks) * unit;
  facts.shm_available = static_cast<std::int64_t>(space.f_bavail) * unit;
  return facts;
}

CrossMemoryFacts probe_cross_memory(const Path& root) {
  CrossMemoryFacts facts{.problem = try_cross_memory()};
  if (const auto scope = read_text(root / "proc/sys/kernel/yama/ptrace_scope")) {
    if (const auto number = parse_integer(*scope)) facts.ptrace_scope = static_cast<int>(*number);
  }
  return facts;
}

ClockFacts probe_clock(const Path& root) {
  const Path folder = root / "sys/devices/system/clocksource/clocksource0";
  ClockFacts facts{.source = read_text(folder / "current_clocksource").value_or(""),
                   .others = read_text(folder / "available_clocksource").value_or("")};
  timespec resolution{};
  if (clock_getres(CLOCK_MONOTONIC, &resolution) == 0) {
    facts.resolution_ns = std::int64_t{resolution.tv_sec} * 1'000'000'000 + resolution.tv_nsec;
  }
  constexpr int readings = 1000;
  std::int64_t last = now_ns(), smallest = 0;
  for (int i = 0; i < readings; ++i) {
    const std::int64_t now = now_ns();
    if (now != last && (smallest == 0 || now - last < smallest)) smallest = now - last;
    last = now;
  }
  facts.smallest_step_ns = smallest;
  return facts;
}

}  // namespace tutti::cli
