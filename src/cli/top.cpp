// top.cpp: `tutti top`: one line per rank, drawn anew every second.
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/made_fd.hpp"
#include "base/system_files.hpp"
#include "base/unique_fd.hpp"
#include "cli/style.hpp"
#include "cli/text_table.hpp"
#include "cli/watch.hpp"
#include "record/jobs.hpp"
#include "watch/words.hpp"

namespace tutti::cli {
namespace {

using Clock = std::chrono::steady_clock;
using record::FoundJob;
using record::FoundRecord;

/// What a rank has used up so far.
struct Used {
  double calls = 0, bytes = 0, waited_ns = 0, cpu_seconds = 0;
  Clock::time_point at{};
};

double cpu_seconds_of(std::int64_t process) {
  const auto status = process_status(static_cast<pid_t>(process));
  return status ? static_cast<double>(status->cpu_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
}

double resident_bytes_of(std::int64_t process) {
  std::istringstream text(read_system_file(fmt::format("/proc/{}/statm", process)).value_or(""));
  double pages = 0, resident = 0;
  text >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// The call that is under way has waited for its time until now, too.
Used used_by(const FoundRecord& rank) {
  Used used{.cpu_seconds = cpu_seconds_of(rank.snapshot.process), .at = Clock::now()};
  for (const record::GroupRecord& group : rank.snapshot.groups) {
    for (const record::VerbCount& count : group.counts) {
      used.calls += static_cast<double>(count.calls);
      used.bytes += static_cast<double>(count.bytes);
      used.waited_ns += static_cast<double>(count.waited_ns);
    }
  }
  return used;
}

std::string awaited_by(const FoundRecord& rank) {
  if (!rank.is_alive) return rank.snapshot.life == record::Life::left ? "has left the job" : "gone";
  const record::CallRecord* const call = rank.snapshot.oldest_under_way();
  if (call == nullptr) return "";
  const std::string& text = rank.snapshot.stall.text;
  const std::size_t at = text.find("waiting for ");
  const std::string whom = rank.snapshot.stall.number == call->number && at != std::string::npos ? text.substr(at) : "";
  const std::string name = call->is_message() ? std::string(tutti::name_of(call->verb))
                                              : fmt::format("{} #{}", tutti::name_of(call->verb), call->sequence);
  return name + (whom.empty() ? "" : ", " + whom);
}

std::string cut(const std::string& line, std::size_t width) {
  std::string result;
  std::size_t used = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if ((static_cast<unsigned char>(line[i]) & 0xC0) != 0x80 && ++used > width) break;
    result += line[i];
  }
  return result;
}

/// Two looks at a job make a page.
class TopPage {
 public:
  std::string text(const FoundJob& job, const Style& style) {
    TextTable table({{.title = "rank", .side = Side::right},
                     {.title = "calls/s", .side = Side::right},
                     {.title = "bytes/s", .side = Side::right},
                     {.title = "waiting", .side = Side::right},
                     {.title = "memory", .side = Side::right},
                     {.title = "cpu", .side = Side::right},
                     {.title = "in"}});
    for (const FoundRecord& rank : job.ranks) add_row(rank, table);
    return fmt::format(
        "{}\n\n{}",
        style.paint(Tone::bold, fmt::format("tutti top  job {}  {} ranks  {}", job.id, job.size, job.command)),
        table.text(style));
  }

 private:
  void add_row(const FoundRecord& rank, TextTable& table) {
    const Used now = used_by(rank);
    const auto [known, is_new] = before_.try_emplace(rank.snapshot.rank, now);
    const Used then = std::exchange(known->second, now);
    const double seconds = std::chrono::duration<double>(now.at - then.at).count();
    const auto rate = [&](double more) { return is_new || seconds <= 0 ? 0 : std::max(0.0, more / seconds); };
    double waiting = rate(now.waited_ns - then.waited_ns) * 1e-7;
    // A wait counts when it is over; one that lasts is seen by its call.
    const record::CallRecord* const call = rank.snapshot.oldest_under_way();
    if (call != nullptr && seconds > 0 &&
        rank.snapshot.read_ns - call->started_ns > static_cast<std::int64_t>(seconds * 1e9))
      waiting = 100;
    table.add({std::to_string(rank.snapshot.rank), watch::say_count(rate(now.calls - then.calls)),
               watch::say_bytes(rate(now.bytes - then.bytes)), fmt::format("{:.0f} %", std::min(waiting, 100.0)),
               watch::say_bytes(resident_bytes_of(rank.snapshot.process)),
               fmt::format("{:.0f} %", 100 * rate(now.cpu_seconds - then.cpu_seconds)), awaited_by(rank)},
              rank.is_alive ? Tone::plain : Tone::dim);
  }
  std::map<int, Used> before_;
};

/// The terminal as it was comes back, however this ends.
class Screen {
 public:
  Screen() : is_terminal_(isatty(STDOUT_FILENO) == 1) {
    sigset_t watched;
    sigemptyset(&watched);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) sigaddset(&watched, signal);
    sigprocmask(SIG_BLOCK, &watched, &before_);
    signals_ = made(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK), "a descriptor for signals");
    if (!is_terminal_) return;
    has_keys_ = tcgetattr(STDIN_FILENO, &usual_) == 0;
    if (has_keys_) {
      termios raw = usual_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    put("\033[?1049h\033[?25l");
  }
  ~Screen() {
    if (is_terminal_) put("\033[?25h\033[?1049l");
    if (has_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &usual_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void show(const std::string& page) const {
    if (!is_terminal_) return put(page + "\n");
    winsize size{};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    const std::size_t columns = size.ws_col == 0 ? 80 : size.ws_col;
    std::size_t rows = size.ws_row == 0 ? 24 : size.ws_row;
    std::istringstream lines(page + "\nq leaves");
    std::string text = "\033[H";
    for (std::string line; rows > 0 && std::getline(lines, line); --rows)
      text += cut(line, columns) + (rows > 1 ? "\033[K\r\n" : "\033[K");
    put(text + "\033[J");
  }
  /// False: it is to end.
  [[nodiscard]] bool wait(std::chrono::milliseconds time) const {
    const auto until = Clock::now() + time;
    while (true) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      if (left <= 0) return true;
      std::array<pollfd, 2> watched = {{{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                        {.fd = has_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}}};
      if (poll(watched.data(), watched.size(), static_cast<int>(left)) <= 0) continue;
      signalfd_siginfo info{};
      if (watched[0].revents != 0 && read(signals_.get(), &info, sizeof info) == sizeof info)
        return info.ssi_signo == SIGWINCH;
      char key = 'q';
      if (watched[1].revents != 0 && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')) return false;
    }
  }

 private:
  static void put(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
  bool is_terminal_, has_keys_ = false;
  termios usual_{};
  sigset_t before_{};
  UniqueFd signals_;
};

}  // namespace

void run_top(const TopOptions& options) {
  const Style style = Style::plain();  // lines are cut to the width of the terminal
  FoundJob job = record::choose_job(record::find_jobs(record::Read::calls), options.job);
  const Screen screen;
  TopPage page;
  page.text(job, style);  // rates need two looks
  const auto time = std::chrono::milliseconds(static_cast<int>(options.seconds * 1000));
  for (int shown = 0; options.times == 0 || shown < options.times; ++shown) {
    if (!screen.wait(time)) return;
    for (FoundRecord& rank : job.ranks) record::refresh(rank, record::Read::calls);
    screen.show(page.text(job, style));
    if (std::ranges::none_of(job.ranks, &FoundRecord::is_alive)) return;
  }
}

}  // namespace tutti::cli
