// mismatch_programs.cpp: runs random programs in which the calls of some ranks differ, and checks how they end.
// SPDX-License-Identifier: Apache-2.0
//
// Programs run in worker processes, one after the other in each: a program that crashes or hangs costs its worker, and is named.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "base/line_writer.hpp"
#include "verdict.hpp"

namespace {

using namespace tutti::mismatch;
using Clock = std::chrono::steady_clock;

constexpr const char* usage =
    "mismatch_programs [--seeds N] [--first S] [--workers N] [--replay SEED]\n"
    "  Runs N programs (300) with the seeds from S on (1). --replay runs one, and tells its calls and its log.\n";
constexpr std::size_t violations_told = 3;
constexpr auto program_limit = std::chrono::seconds(90);  // several calls may miss their deadline one after the other
constexpr std::size_t log_told = 4000;  // bytes of a bad program's log: what is rare may not come again in a replay

struct Options {
  std::uint64_t seeds = 300, first = 1;
  unsigned workers = 0;
  bool replay = false;
};

/// stderr into memory while it lives: what the library logs belongs to the program that is running.
class CapturedLog {
 public:
  CapturedLog() : file_(memfd_create("log", MFD_CLOEXEC)), before_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    std::fflush(stderr);
    dup2(file_, STDERR_FILENO);
  }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  ~CapturedLog() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    close(file_);
  }
  [[nodiscard]] std::string text() const {
    std::string text(static_cast<std::size_t>(lseek(file_, 0, SEEK_END)), '\0');
    const ssize_t size = pread(file_, text.data(), text.size(), 0);
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return text;
  }

 private:
  int file_, before_;
};

std::string replay_command(std::uint64_t seed) {
  return fmt::format("  replay: {} --replay {}\n", program_invocation_name, seed);
}

/// One seed's report, as it goes through the pipe: fields end with a tab, lines of text with a newline, the report with a NUL.
std::string run_seed(std::uint64_t seed, bool tells_all) {
  const Program program = draw_program(seed);
  if (tells_all) fmt::print("{}", describe(program));
  std::fflush(stdout);
  Endings endings;
  std::string log;
  {
    const CapturedLog captured;
    endings = play(program);
    tutti::LineWriter::of_stderr().flush(std::chrono::seconds(10));  // a thread of its own writes what is logged
    log = captured.text();
  }
  const std::vector<Violation> violations = judge(program, endings, log);
  const Naming naming = naming_of(program, endings);
  bool differs = false;
  for (int group = 0; group < static_cast<int>(program.groups.size()); ++group)
    differs |= first_difference(program, group).has_value();
  if (tells_all) fmt::print("{}log:\n{}\n", describe(endings), log);
  std::string report = fmt::format("{}\t{}\t{}\t{}\t{}\t", seed, differs ? 1 : 0, naming.told, naming.named,
                                   violations.empty() ? "" : violations[0].rule);
  for (std::size_t i = 0; i < violations.size() && (tells_all || i < violations_told); ++i)
    report += fmt::format("  {}: {}\n", violations[i].rule, violations[i].text);
  if (violations.size() > violations_told && !tells_all)
    report += fmt::format("  … and {} more\n", violations.size() - violations_told);
  if (!violations.empty() && !tells_all) report += fmt::format("  its log:\n{}\n", log.substr(0, log_told));
  report.push_back('\0');
  return report;
}

/// A process that runs seeds; the parent reads its reports.
class WorkerProcess {
 public:
  /// Seeds `first`, `first` + `step`, … below `end`.
  WorkerProcess(std::uint64_t first, std::uint64_t step, std::uint64_t end) : next_(first), step_(step), end_(end) {
    start();
  }

  [[nodiscard]] int reports() const { return read_end_; }
  [[nodiscard]] bool done() const { return next_ >= end_; }
  [[nodiscard]] bool is_late() const { return Clock::now() - since_ > program_limit; }

  /// Reports that have come in whole. A worker that ended before all its seeds were done crashed: `lost` gets its seed and how.
  std::vector<std::string> take(std::string& lost) {
    std::array<char, 65536> block{};
    const ssize_t count = read(read_end_, block.data(), block.size());
    if (count <= 0) {
      lost = fmt::format("{}\t1\t0\t0\tthe process died\t  {}\n", next_, end());
      next_ += step_;
      if (!done()) start();
      return {};
    }
    text_.append(block.data(), static_cast<std::size_t>(count));
    std::vector<std::string> reports;
    for (std::size_t at = text_.find('\0'); at != std::string::npos; at = text_.find('\0')) {
      reports.push_back(text_.substr(0, at));
      text_.erase(0, at + 1);
      next_ += step_;
      since_ = Clock::now();
    }
    if (done()) end();
    return reports;
  }
  void stop() const { kill(pid_, SIGKILL); }

 private:
  void start() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      for (std::uint64_t seed = next_; seed < end_; seed += step_) {
        const std::string report = run_seed(seed, false);
        if (write(ends[1], report.data(), report.size()) != static_cast<ssize_t>(report.size())) _exit(1);
      }
      _exit(0);
    }
    close(ends[1]);
    read_end_ = ends[0];
    since_ = Clock::now();
    text_.clear();
  }
  std::string end() {
    int status = 0;
    waitpid(pid_, &status, 0);
    close(read_end_);
    read_end_ = -1;
    if (WIFSIGNALED(status))
      return fmt::format("signal {} ({})", WTERMSIG(status),
                         is_late() ? "hung, and was stopped" : strsignal(WTERMSIG(status)));
    return fmt::format("status {}", WEXITSTATUS(status));
  }

  std::uint64_t next_, step_, end_;
  pid_t pid_ = -1;
  int read_end_ = -1;
  Clock::time_point since_{};
  std::string text_;
};

class Summary {
 public:
  void add(const std::string& report) {
    std::array<std::string, 6> fields;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      const std::size_t end = report.find('\t', begin);
      fields[i] = report.substr(begin, end - begin);
      begin = end + 1;
    }
    fields[5] = report.substr(begin);
    ++programs_;
    differing_ += fields[1] == "1" ? 1 : 0;
    told_ += std::atoi(fields[2].c_str());
    named_ += std::atoi(fields[3].c_str());
    if (fields[4].empty()) return;
    ++failures_[fields[4]];
    ++failed_;
    fmt::print("seed {} violates:\n{}{}", fields[0], fields[5],
               replay_command(std::strtoull(fields[0].c_str(), nullptr, 10)));
    std::fflush(stdout);
  }

  int tell(double seconds) const {
    for (const auto& [rule, count] : failures_) fmt::print("{:6} × {}\n", count, rule);
    fmt::print("{} of {} Mismatch errors name the first call that differed\n", named_, told_);
    fmt::print("{} programs, {} with a difference, in {:.1f} s: {}\n", programs_, differing_, seconds,
               failed_ == 0 ? "all ended as they should" : fmt::format("{} did NOT end as they should", failed_));
    return failed_ == 0 ? 0 : 1;
  }

 private:
  std::map<std::string, int> failures_;
  int programs_ = 0, differing_ = 0, failed_ = 0, told_ = 0, named_ = 0;
};

void run_all(const Options& options, Summary& summary) {
  std::vector<WorkerProcess> workers;
  const std::uint64_t end = options.first + options.seeds;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(options.workers, options.seeds); ++i)
    workers.emplace_back(options.first + i, options.workers, end);
  while (true) {
    std::erase_if(workers, [](const WorkerProcess& worker) { return worker.done(); });
    if (workers.empty()) return;
    std::vector<pollfd> ends;
    for (const WorkerProcess& worker : workers)
      ends.push_back({.fd = worker.reports(), .events = POLLIN, .revents = 0});
    poll(ends.data(), ends.size(), 1000);
    for (std::size_t i = 0; i < workers.size(); ++i) {
      if (workers[i].is_late()) workers[i].stop();
      if (ends[i].revents == 0) continue;
      std::string lost;
      for (const std::string& report : workers[i].take(lost)) summary.add(report);
      if (!lost.empty()) summary.add(lost);
    }
  }
}

[[noreturn]] void explain_and_exit() {
  std::fputs(usage, stderr);
  std::exit(2);
}

Options parse(int count, char** words) {
  Options options;
  options.workers = std::max(1u, std::thread::hardware_concurrency());
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    std::uint64_t value = 0;
    if (++i >= count) explain_and_exit();
    const char* const end = words[i] + std::strlen(words[i]);
    if (const auto [at, error] = std::from_chars(words[i], end, value); error != std::errc() || at != end)
      explain_and_exit();
    if (word == "--seeds") options.seeds = value;
    else if (word == "--first") options.first = value;
    else if (word == "--workers") options.workers = static_cast<unsigned>(std::max<std::uint64_t>(1, value));
    else if (word == "--replay") {
      options.first = value;
      options.seeds = 1;
      options.replay = true;
    } else explain_and_exit();
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  const auto begin = Clock::now();
  Summary summary;
  if (options.replay) summary.add(run_seed(options.first, true).c_str());
  else run_all(options, summary);
  return summary.tell(std::chrono::duration<double>(Clock::now() - begin).count());
}
