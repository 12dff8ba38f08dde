// rank_output.cpp: pipes in, lines out.
// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <tutti/error.hpp>

#include "launch/options.hpp"
#include "wire/trusted_file.hpp"

namespace tutti::launch {
namespace {

using Piece = LineSplitter::Piece;

constexpr std::size_t read_bytes = std::size_t{128} << 10;

std::string system_reason() { return std::generic_category().message(errno); }

std::string make_prefix(const RankOutputOptions& options, std::size_t rank, Stream stream, std::string_view after) {
  constexpr std::array colours = {36, 33, 32, 35, 34, 31};
  if (!options.has_prefix) return "";
  const auto number = static_cast<std::size_t>(options.first_rank) + rank;
  if (!options.has_colour[static_cast<std::size_t>(stream)]) return fmt::format("[{}]{}", number, after);
  return fmt::format("\x1b[{}m[{}]\x1b[0m{}", colours[number % colours.size()], number, after);
}

}  // namespace

RankOutput::RankOutput(const RankOutputOptions& options, Printer& printer)
    : options_(options),
      printer_(printer),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      ranks_(static_cast<std::size_t>(options.ranks)),
      buffer_(read_bytes, '\0') {
  if (!epoll_) throw Error(fmt::format("tuttirun cannot make an epoll: {}", system_reason()));
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    open_pipes(rank);
    if (!options_.log_folder.empty()) open_log(rank);
  }
}

void RankOutput::open_pipes(std::size_t rank) {
  for (std::size_t stream = 0; stream < 2; ++stream) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw Error(
          fmt::format("tuttirun cannot make the pipes of {} ranks: {}; raise the limit on open files (ulimit -n)",
                      ranks_.size(), system_reason()));
    }
    Pipe& pipe = ranks_[rank].pipes[stream];
    pipe.reader.reset(ends[0]);
    pipe.writer.reset(ends[1]);
    pipe.prefix = make_prefix(options_, rank, static_cast<Stream>(stream), " ");
    pipe.continued_prefix = make_prefix(options_, rank, static_cast<Stream>(stream), "+");
    epoll_event event{.events = EPOLLIN, .data = {.u64 = rank * 2 + stream}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, ends[0], &event) != 0)
      throw Error(fmt::format("tuttirun cannot watch the pipes of its ranks: {}", system_reason()));
    ++open_;
  }
}

// In a folder that others can write, such as /tmp, a file of that name may be a symbolic link to a file of the user's.
void RankOutput::open_log(std::size_t rank) {
  if (rank == 0) open_log_folder();
  const auto number = static_cast<std::size_t>(options_.first_rank) + rank;
  const std::string name = fmt::format("rank-{}.log", number);
  constexpr int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  UniqueFd file(openat(log_folder_.get(), name.c_str(), flags, 0666));
  struct stat status {};
  std::string why;
  if (!file) {
    why = errno == ELOOP ? "it is a symbolic link" : system_reason();
  } else if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    why = "it is no regular file";
  } else if (ftruncate(file.get(), 0) != 0) {
    why = system_reason();
  }
  if (!why.empty()) {
    throw UsageError(
        fmt::format("--log-dir {}: cannot write {}/{}: {}", options_.log_folder, options_.log_folder, name, why));
  }
  ranks_[rank].log = std::move(file);
}

// Checked before it is created: no folder is created behind a link of another user's.
void RankOutput::open_log_folder() {
  std::error_code failed;
  try {
    log_folder_ = wire::open_trusted_folder(options_.log_folder);
    if (!log_folder_ && errno == ENOENT) {
      std::filesystem::create_directories(options_.log_folder, failed);
      if (!failed) log_folder_ = wire::open_trusted_folder(options_.log_folder);
    }
  } catch (const AuthenticationError& error) {
    throw UsageError(fmt::format("--log-dir: {}", error.what()));
  }
  if (!log_folder_) {
    throw UsageError(fmt::format("--log-dir {}: {}", options_.log_folder, failed ? failed.message() : system_reason()));
  }
}

void RankOutput::close_writers() {
  for (Rank& rank : ranks_) {
    for (Pipe& pipe : rank.pipes) pipe.writer.reset();
  }
}

void RankOutput::pump() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) read_pipe(events[static_cast<std::size_t>(i)].data.u64);
  printer_.flush();
}

void RankOutput::read_pipe(std::size_t index) {
  Pipe& pipe = ranks_[index / 2].pipes[index % 2];
  const ssize_t bytes = read(pipe.reader.get(), buffer_.data(), buffer_.size());
  if (bytes < 0 && errno == EINTR) return;
  const auto take_piece = [this, index](std::string_view text, Piece piece) { take(index, text, piece); };
  if (bytes > 0) {
    pipe.splitter.add(std::string_view(buffer_).substr(0, static_cast<std::size_t>(bytes)), take_piece);
    return;
  }
  pipe.splitter.finish(take_piece);
  pipe.reader.reset();
  --open_;
}

void RankOutput::take(std::size_t index, std::string_view text, Piece piece) {
  Rank& rank = ranks_[index / 2];
  rank.tail.add(text);
  if (rank.log) log(rank, text);
  if (options_.is_shown) show(rank.pipes[index % 2], static_cast<Stream>(index % 2), text, piece);
}

void RankOutput::show(const Pipe& pipe, Stream stream, std::string_view text, Piece piece) {
  std::string& out = printer_.text(stream);
  const bool is_first_part = piece == Piece::whole || piece == Piece::begun;
  const bool lacks_newline = piece == Piece::begun || piece == Piece::continued;
  if (lacks_newline || !is_first_part) {
    out.append(is_first_part ? pipe.prefix : pipe.continued_prefix).append(text);
    if (lacks_newline) out.push_back('\n');
  } else if (pipe.prefix.empty()) {
    out.append(text);
  } else {
    while (!text.empty()) {
      const std::size_t line_bytes = text.find('\n') + 1;
      out.append(pipe.prefix).append(text.data(), line_bytes);
      text.remove_prefix(line_bytes);
    }
  }
  printer_.flush_if_large();
}

void RankOutput::log(Rank& rank, std::string_view text) {
  while (!text.empty()) {
    const ssize_t bytes = write(rank.log.get(), text.data(), text.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) {
      if (log_failure_.empty()) log_failure_ = fmt::format("--log-dir {}: {}", options_.log_folder, system_reason());
      rank.log.reset();
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(bytes));
  }
}

std::string RankOutput::last_lines(int rank, Stream stream, std::size_t lines_max) const {
  std::string_view lines = ranks_[static_cast<std::size_t>(rank)].tail.last_lines(lines_max);
  std::string result;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    result.append(at(rank, stream).prefix).append(line).push_back('\n');
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
  }
  return result;
}

}  // namespace tutti::launch
