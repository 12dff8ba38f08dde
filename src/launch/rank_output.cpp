// rank_output.cpp: bytes in, lines out.
// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
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

std::string system_reason() { return std::generic_category().message(errno); }

std::string make_prefix(const RankOutputOptions& options, std::size_t rank, Stream stream, std::string_view after) {
  constexpr std::array colours = {36, 33, 32, 35, 34, 31};
  if (!options.has_prefix) return "";
  const auto number = static_cast<std::size_t>(options.first_rank) + rank;
  const std::string label =
      options.hosts.empty() ? std::to_string(number) : fmt::format("{}:{}", options.hosts[rank], number);
  if (!options.has_colour[static_cast<std::size_t>(stream)]) return fmt::format("[{}]{}", label, after);
  return fmt::format("\x1b[{}m[{}]\x1b[0m{}", colours[number % colours.size()], label, after);
}

}  // namespace

RankOutput::RankOutput(const RankOutputOptions& options, Printer& printer)
    : options_(options), printer_(printer), ranks_(static_cast<std::size_t>(options.ranks)) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    for (std::size_t stream = 0; stream < 2; ++stream) {
      Lines& lines = ranks_[rank].streams[stream];
      lines.prefix = make_prefix(options_, rank, static_cast<Stream>(stream), " ");
      lines.continued_prefix = make_prefix(options_, rank, static_cast<Stream>(stream), "+");
      ++open_;
    }
    if (!options_.log_folder.empty()) open_log(rank);
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
  } else if (!options_.continues_logs && ftruncate(file.get(), 0) != 0) {
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

void RankOutput::add(int rank, Stream stream, std::string_view bytes) {
  const std::size_t index = index_of(rank);
  ranks_[index].streams[static_cast<std::size_t>(stream)].splitter.add(
      bytes, [=, this](std::string_view text, Piece piece) { take(index, stream, text, piece); });
}

void RankOutput::finish(int rank, Stream stream) {
  const std::size_t index = index_of(rank);
  Lines& lines = ranks_[index].streams[static_cast<std::size_t>(stream)];
  if (!lines.is_open) return;
  lines.is_open = false;
  --open_;
  lines.splitter.finish([=, this](std::string_view text, Piece piece) { take(index, stream, text, piece); });
}

void RankOutput::take(std::size_t index, Stream stream, std::string_view text, Piece piece) {
  Rank& rank = ranks_[index];
  rank.tail.add(text);
  if (rank.log) log(rank, text);
  if (options_.is_shown) show(rank.streams[static_cast<std::size_t>(stream)], stream, text, piece);
}

void RankOutput::show(const Lines& lines, Stream stream, std::string_view text, Piece piece) {
  std::string& out = printer_.text(stream);
  const bool is_first_part = piece == Piece::whole || piece == Piece::begun;
  const bool lacks_newline = piece == Piece::begun || piece == Piece::continued;
  if (lacks_newline || !is_first_part) {
    out.append(is_first_part ? lines.prefix : lines.continued_prefix).append(text);
    if (lacks_newline) out.push_back('\n');
  } else if (lines.prefix.empty()) {
    out.append(text);
  } else {
    while (!text.empty()) {
      const std::size_t line_bytes = text.find('\n') + 1;
      out.append(lines.prefix).append(text.data(), line_bytes);
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
  const Rank& said = ranks_[index_of(rank)];
  std::string_view rest = said.tail.last_lines(lines_max);
  std::string result;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    result.append(said.streams[static_cast<std::size_t>(stream)].prefix).append(line).push_back('\n');
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return result;
}

}  // namespace tutti::launch
