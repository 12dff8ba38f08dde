// rank_pipes.cpp: one epoll over the pipes of all ranks.
// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_pipes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <tutti/error.hpp>

#include "base/made_fd.hpp"

namespace tutti::launch {
namespace {

constexpr std::size_t read_bytes = std::size_t{128} << 10;

}  // namespace

RankPipes::RankPipes(int ranks)
    : epoll_(made(epoll_create1(EPOLL_CLOEXEC), "an epoll instance")),
      pipes_(static_cast<std::size_t>(ranks)),
      buffer_(read_bytes, '\0') {
  for (std::size_t rank = 0; rank < pipes_.size(); ++rank) open_pipes(rank);
}

void RankPipes::open_pipes(std::size_t rank) {
  for (std::size_t stream = 0; stream < 2; ++stream) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw Error(fmt::format("cannot make the pipes of {} ranks: {}", pipes_.size(), describe_system_error(errno)));
    }
    Pipe& pipe = pipes_[rank][stream];
    pipe.reader.reset(ends[0]);
    pipe.writer.reset(ends[1]);
    epoll_event event{.events = EPOLLIN, .data = {.u64 = rank * 2 + stream}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, ends[0], &event) != 0)
      throw Error(
          fmt::format("tuttirun cannot watch the pipes of its ranks: {}", std::generic_category().message(errno)));
    ++open_;
  }
}

void RankPipes::close_writers() {
  for (auto& rank : pipes_) {
    for (Pipe& pipe : rank) pipe.writer.reset();
  }
}

void RankPipes::pump(const Take& take, std::size_t bytes_max) {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  if (count < 0 && errno != EINTR)
    throw Error(fmt::format("cannot look for what the ranks print: {}", describe_system_error(errno)));
  for (int i = 0; i < count && bytes_max > 0; ++i)
    bytes_max -= read_pipe(events[static_cast<std::size_t>(i)].data.u64, take, bytes_max);
}

std::size_t RankPipes::read_pipe(std::size_t index, const Take& take, std::size_t bytes_max) {
  Pipe& pipe = pipes_[index / 2][index % 2];
  const ssize_t bytes = read(pipe.reader.get(), buffer_.data(), std::min(buffer_.size(), bytes_max));
  if (bytes < 0 && errno == EINTR) return 0;
  if (bytes <= 0) {
    // By hand: a guard that is being forked has a copy for a moment, with which the epoll would go on to report it.
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, pipe.reader.get(), nullptr);
    pipe.reader.reset();
    --open_;
  }
  const auto taken = static_cast<std::size_t>(std::max<ssize_t>(bytes, 0));
  take(static_cast<int>(index / 2), static_cast<Stream>(index % 2), std::string_view(buffer_).substr(0, taken));
  return taken;
}

}  // namespace tutti::launch
