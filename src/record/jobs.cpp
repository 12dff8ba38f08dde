// jobs.cpp: walks /proc for records, and asks ranks for their stacks.
// SPDX-License-Identifier: Apache-2.0
#include "record/jobs.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <ctime>
#include <map>
#include <memory>
#include <utility>

#include <tutti/error.hpp>

#include "base/printable.hpp"
#include "base/system_files.hpp"

namespace tutti::record {
namespace {

using FileId = std::pair<dev_t, ino_t>;

/// The entries of a folder that are numbers.
std::vector<std::int64_t> numbers_in(const std::string& folder) {
  std::vector<std::int64_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), closedir);
  while (const dirent* const entry = open ? readdir(open.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(name.begin(), name.end(), number);
    if (error == std::errc() && end == name.end()) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

bool is_own_process(std::int64_t process) {
  struct stat status {};
  return stat(fmt::format("/proc/{}", process).c_str(), &status) == 0 && status.st_uid == geteuid();
}

bool names_record(const std::string& link) {
  std::string target(512, '\0');
  const ssize_t length = readlink(link.c_str(), target.data(), target.size());
  target.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return target == fmt::format("/memfd:{} (deleted)", memory_name) || target.ends_with(file_ending);
}

void collect(std::int64_t process, std::map<FileId, FoundRecord>& into) {
  const std::string folder = fmt::format("/proc/{}/fd", process);
  for (const std::int64_t descriptor : numbers_in(folder)) {
    const std::string link = fmt::format("{}/{}", folder, descriptor);
    if (!names_record(link)) continue;
    UniqueFd file(open(link.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) continue;
    FoundRecord& found = into[{status.st_dev, status.st_ino}];
    if (!found.file) found.file = std::move(file);
    if (found.holders.empty() || found.holders.back() != process) found.holders.push_back(process);
  }
}

std::string command_of(std::int64_t process) {
  std::string words = read_system_file(fmt::format("/proc/{}/cmdline", process)).value_or("");
  while (!words.empty() && words.back() == '\0') words.pop_back();
  std::ranges::replace(words, '\0', ' ');
  return printable_text(words);
}

// The lowest of those that hold records of ranks, and are none: tuttirun is older than its guard.
void find_launcher(FoundJob& job) {
  for (const FoundRecord& rank : job.ranks) {
    for (const std::int64_t holder : rank.holders) {
      const bool is_rank = std::ranges::any_of(
          job.ranks, [&](const FoundRecord& other) { return other.is_alive && other.snapshot.process == holder; });
      const std::string command = command_of(holder);
      const bool launches =
          command.find("tuttirun") != std::string::npos || command.find("tutti run") != std::string::npos;
      if (!is_rank && launches && (job.launcher < 0 || holder < job.launcher)) job.launcher = holder;
    }
  }
  if (job.launcher >= 0) {
    job.command = command_of(job.launcher);
  } else if (!job.ranks.empty()) {
    job.command = command_of(job.ranks.front().snapshot.process);
  }
}

std::string list(const std::vector<FoundJob>& jobs) {
  std::string text;
  for (const FoundJob& job : jobs) text += fmt::format("\n  {}  {} ranks  {}", job.id, job.size, job.command);
  return text;
}

/// Its mapping of a record, for as long as it asks.
class Asked {
 public:
  explicit Asked(FoundRecord& rank) : rank_(&rank) {
    struct stat status {};
    if (fstat(rank.file.get(), &status) != 0 || static_cast<std::size_t>(status.st_size) < sizeof(Fixed)) return;
    memory_ = mmap(nullptr, sizeof(Fixed), PROT_READ | PROT_WRITE, MAP_SHARED, rank.file.get(), 0);
    if (memory_ == MAP_FAILED) return;
    number_ = fixed().asked.fetch_add(1) + 1;
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&fixed().asked), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  Asked(Asked&& other) noexcept
      : rank_(other.rank_), memory_(std::exchange(other.memory_, MAP_FAILED)), number_(other.number_) {}
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  Asked& operator=(Asked&&) = delete;
  ~Asked() {
    if (memory_ != MAP_FAILED) munmap(memory_, sizeof(Fixed));
  }
  [[nodiscard]] FoundRecord& rank() const { return *rank_; }
  /// Sleeps until it has answered, or the limit. Several may have asked.
  bool wait(std::chrono::steady_clock::time_point limit) const {
    if (memory_ == MAP_FAILED) return false;
    while (true) {
      const std::uint32_t answered = fixed().answered.load();
      if (static_cast<std::int32_t>(answered - number_) >= 0) return true;
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(limit - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      const timespec time{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
      syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&fixed().answered), FUTEX_WAIT, answered, &time, nullptr, 0);
    }
  }

 private:
  [[nodiscard]] Fixed& fixed() const { return *static_cast<Fixed*>(memory_); }
  FoundRecord* rank_;
  void* memory_ = MAP_FAILED;
  std::uint32_t number_ = 0;
};

}  // namespace

void refresh(FoundRecord& rank, Read what) {
  const auto process = static_cast<pid_t>(rank.snapshot.process);
  rank.is_alive = process > 0 && start_of_process(process) == rank.snapshot.process_started;
  const Alive alive = rank.is_alive ? Alive::yes : Alive::no;
  auto read = what == Read::calls ? read_snapshot(rank.file.get(), alive) : read_counts(rank.file.get(), alive);
  if (read) rank.snapshot = std::move(*read);
}

std::vector<FoundJob> find_jobs(Read what) {
  std::map<FileId, FoundRecord> records;
  for (const std::int64_t process : numbers_in("/proc")) {
    if (is_own_process(process)) collect(process, records);
  }
  std::map<std::string, FoundJob> jobs;
  for (auto& [id, found] : records) {
    auto head = read_counts(found.file.get(), Alive::no);
    if (!head || head->size < 1 || head->rank < 0 || head->rank >= head->size)
      continue;  // it has not joined its job yet
    found.snapshot = std::move(*head);
    refresh(found, what);
    FoundJob& job = jobs[found.snapshot.job];
    job.id = found.snapshot.job;
    job.size = std::max(job.size, found.snapshot.size);
    job.ranks.push_back(std::move(found));
  }
  std::vector<FoundJob> all;
  for (auto& [id, job] : jobs) {
    std::ranges::sort(job.ranks, {}, [](const FoundRecord& rank) { return rank.snapshot.rank; });
    find_launcher(job);
    all.push_back(std::move(job));
  }
  return all;
}

FoundJob choose_job(std::vector<FoundJob> jobs, std::string_view name) {
  if (jobs.empty()) throw InvalidArgument("no job of this user runs on this machine");
  std::int64_t process = 0;  // none
  std::from_chars(name.data(), name.data() + name.size(), process);
  const auto is_meant = [&](const FoundJob& job) {
    if (name.empty() || job.id.starts_with(name) || job.launcher == process) return true;
    return std::ranges::any_of(job.ranks, [&](const FoundRecord& rank) { return rank.snapshot.process == process; });
  };
  const auto others = std::stable_partition(jobs.begin(), jobs.end(), is_meant);
  const auto count = others - jobs.begin();
  if (count == 1) return std::move(jobs.front());
  const std::string what = count == 0 ? fmt::format("there is no job {}; there are", name)
                                      : fmt::format("which job? {} are meant by \"{}\"", count, name);
  if (count > 1) jobs.erase(others, jobs.end());
  throw InvalidArgument(what + list(jobs));
}

void ask_for_stacks(std::vector<FoundRecord*> ranks, std::chrono::milliseconds limit) {
  std::vector<Asked> asked;
  for (FoundRecord* const rank : ranks) {
    rank->snapshot.stack.clear();
    if (rank->is_alive && rank->snapshot.answers) asked.emplace_back(*rank);
  }
  const auto until = std::chrono::steady_clock::now() + limit;
  for (const Asked& one : asked) {
    const bool has_answered = one.wait(until);
    refresh(one.rank(), Read::calls);
    if (!has_answered) one.rank().snapshot.stack.clear();
  }
}

}  // namespace tutti::record
