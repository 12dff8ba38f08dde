// rank_news.cpp: one pipe per rank, written without ever waiting.
// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_news.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/printable.hpp"
#include "launch/cause.hpp"

namespace tutti::launch {

RankNews::RankNews(int ranks) : pipes_(static_cast<std::size_t>(ranks)) {
  for (Pipe& pipe : pipes_) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
    pipe.reader.reset(ends[0]);
    pipe.writer.reset(ends[1]);
  }
}

void RankNews::close_readers() {
  for (Pipe& pipe : pipes_) pipe.reader.reset();
}

void RankNews::tell(std::string_view job, int rank, std::string_view how) const {
  constexpr std::size_t how_bytes_max = 1024;  // with the number less than a pipe takes in one piece
  const std::string line = fmt::format("{} {} {}\n", rank, job, printable_text(how.substr(0, how_bytes_max)));
  for (const Pipe& pipe : pipes_) {
    if (!pipe.writer) continue;
    [[maybe_unused]] const ssize_t bytes = write(pipe.writer.get(), line.data(), line.size());
  }
}

bool RankNews::tell_line(int rank, std::string_view line) const {
  const UniqueFd& writer = pipes_[static_cast<std::size_t>(rank)].writer;
  return writer && write(writer.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

std::string describe_process_end(int process, int status, std::string_view host) {
  const std::string where = host.empty() ? "" : fmt::format(" on {}", host);
  const std::string how = WIFSIGNALED(status) ? "was killed by signal " + describe_signal(WTERMSIG(status))
                                              : fmt::format("exited with status {}", WEXITSTATUS(status));
  return fmt::format("its process {}{} {}", process, where, how);
}

}  // namespace tutti::launch
