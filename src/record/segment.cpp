// segment.cpp: makes and inherits the files that records lie in.
// SPDX-License-Identifier: Apache-2.0
#include "record/segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <tutti/error.hpp>

namespace tutti::record {
namespace {

constexpr std::int64_t traced_entries_usual = 1 << 18, traced_entries_max = 1 << 28;

}  // namespace

UniqueFd make_segment(std::size_t entries) {
  UniqueFd file(memfd_create(memory_name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return file;
  if (ftruncate(file.get(), static_cast<off_t>(segment_bytes(entries))) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    file.reset();
  return file;
}

// Written from the beginning: one that another job has left there is replaced, not shortened under those who read it.
UniqueFd make_segment_file(const std::string& folder, int rank, std::size_t entries) {
  const std::string path = fmt::format("{}/rank-{}{}", folder, rank, file_ending);
  const auto refuse = [&](std::string_view what) {
    throw Error(fmt::format("the records of rank {} cannot be written into {}: {}: {}", rank, path, what,
                            std::strerror(errno)));
  };
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) refuse("the folder cannot be made");
  if (unlink(path.c_str()) != 0 && errno != ENOENT) refuse("an older file cannot be removed");
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) refuse("it cannot be made");
  // Committed: running out of room later would be a SIGBUS.
  if (const int error = posix_fallocate(file.get(), 0, static_cast<off_t>(traced_bytes(entries))); error != 0) {
    errno = error;
    unlink(path.c_str());
    refuse("there is no room (TUTTI_TRACE_ENTRIES makes it smaller)");
  }
  return file;
}

std::string describe_descriptor(int file) {
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) return {};
  return fmt::format("{}:{}", file, status.st_ino);
}

// The program that started this rank may have closed the descriptor, and its number may be another file's by now.
UniqueFd inherited_segment(const Environment& environment) {
  const auto said = environment.get(descriptor_variable);
  if (!said || said->empty()) return UniqueFd();
  int number = -1;
  std::from_chars(said->data(), said->data() + said->size(), number);
  if (number < 0 || describe_descriptor(number) != *said) return UniqueFd();
  fcntl(number, F_SETFD, FD_CLOEXEC);                  // programs that this rank starts are no ranks
  return UniqueFd(fcntl(number, F_DUPFD_CLOEXEC, 3));  // a process may leave its job, and join it again
}

std::size_t traced_entries(const Environment& environment) {
  const std::int64_t asked =
      environment.integer("TUTTI_TRACE_ENTRIES", 1024, traced_entries_max).value_or(traced_entries_usual);
  return std::bit_floor(static_cast<std::size_t>(asked));
}

}  // namespace tutti::record
