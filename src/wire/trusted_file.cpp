// trusted_file.cpp: walks a path component by component, by descriptors, so that it cannot change in between.
// SPDX-License-Identifier: Apache-2.0
#include "wire/trusted_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <deque>
#include <string>
#include <system_error>

#include <tutti/error.hpp>

namespace tutti::wire {
namespace {

bool is_own(const struct stat& status) { return status.st_uid == geteuid() || status.st_uid == 0; }

class Walk {
 public:
  explicit Walk(const std::filesystem::path& path) : path_(path) { follow(path); }

  // The folder at the end; none, and errno, where the way breaks off.
  UniqueFd to_the_end() {
    while (here_ && !ahead_.empty()) {
      const std::string name = ahead_.front();
      ahead_.pop_front();
      step(name);
    }
    return std::move(here_);
  }

 private:
  static constexpr int links_max = 40;  // as many as the kernel follows

  void follow(const std::filesystem::path& path) {
    if (path.is_absolute()) here_.reset(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!path.is_absolute() && !here_) here_.reset(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    std::deque<std::string> names;
    for (const auto& name : path.relative_path()) {
      if (!name.empty()) names.push_back(name.string());
    }
    ahead_.insert(ahead_.begin(), names.begin(), names.end());
  }

  void step(const std::string& name) {
    UniqueFd next(openat(here_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!next || fstat(next.get(), &status) != 0) return break_off(errno);
    if (S_ISDIR(status.st_mode)) {
      here_ = std::move(next);
    } else if (S_ISLNK(status.st_mode)) {
      follow_link(name, next, status);
    } else {
      break_off(ENOTDIR);
    }
  }

  void follow_link(const std::string& name, const UniqueFd& link, const struct stat& status) {
    if (!is_own(status)) {
      throw AuthenticationError(fmt::format(
          "{} cannot be trusted: \"{}\" on the way to it is a symbolic link that user {} made; use a path of "
          "your own",
          path_.string(), name, status.st_uid));
    }
    std::array<char, PATH_MAX> target{};
    const ssize_t bytes = readlinkat(link.get(), "", target.data(), target.size());
    if (bytes < 0 || ++links_ > links_max) return break_off(bytes < 0 ? errno : ELOOP);
    follow(std::string(target.data(), static_cast<std::size_t>(bytes)));
  }

  void break_off(int error) {
    here_.reset();
    errno = error;
  }

  std::filesystem::path path_;
  UniqueFd here_;
  std::deque<std::string> ahead_;
  int links_ = 0;
};

}  // namespace

UniqueFd open_trusted_folder(const std::filesystem::path& folder) { return Walk(folder).to_the_end(); }

UniqueFd open_trusted(const std::filesystem::path& path) {
  const UniqueFd folder = open_trusted_folder(path.parent_path());
  if (!folder) return {};
  // Without waiting, should it be a pipe, and without its becoming our terminal, should it be one.
  constexpr int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  return UniqueFd(openat(folder.get(), path.filename().c_str(), flags));
}

void check_trusted(int file, const std::filesystem::path& path, std::string_view what, Others others) {
  struct stat status {};
  if (fstat(file, &status) != 0) {
    throw AuthenticationError(
        fmt::format("cannot examine {} {}: {}", what, path.string(), std::generic_category().message(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    throw AuthenticationError(fmt::format("{} {} is not a regular file", what, path.string()));
  }
  if (!is_own(status)) {
    throw AuthenticationError(fmt::format(
        "{} {} belongs to user {}, not to user {} who runs this: it is not to be trusted; remove it, or use "
        "another path",
        what, path.string(), status.st_uid, geteuid()));
  }
  if ((status.st_mode & static_cast<mode_t>(others)) != 0) {
    throw AuthenticationError(fmt::format(
        "{} {} has mode {:04o}: others can {} it, so it is not to be trusted; remove it and a new one is made, or run "
        "chmod 600 if nobody did",
        what, path.string(), status.st_mode & 07777, others == Others::may_not_write ? "write" : "use"));
  }
}

}  // namespace tutti::wire
