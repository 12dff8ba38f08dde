// file_log.hpp: the file behind a file store: a log of changes that only grows, under a lock.
// SPDX-License-Identifier: Apache-2.0
//
// 1. The file is a line that says what it is, then set and remove requests as the tcp store frames them.
// 2. Everything happens under a lock on the file, shared to read and exclusive to append. The lock also makes network
//    file systems show what others wrote.
// 3. A record is complete or absent: a writer that fails truncates what it wrote; the next writer cuts off what a
//    killed writer left at the end.
//
// The lock belongs to the open file description, so that two stores on one file in one process exclude each other too.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>

#include "base/unique_fd.hpp"
#include "store/protocol.hpp"
#include "store/table.hpp"

namespace tutti::store {

class FileLog {
 public:
  explicit FileLog(const std::filesystem::path& path);

  enum class Access { read, append };
  // Takes the lock without waiting, brings the table up to date and calls `use`. False if another store has the lock.
  bool try_use(Access access, const std::function<void(Table&)>& use);
  // Only inside try_use(append): writes the change to the file, to be made in the table by the caller. Throws
  // RendezvousError if it cannot; then the file is as before.
  void append(const Request& change);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void check_file();
  void catch_up();
  void read_records();
  void write_at_end(std::string_view bytes);
  [[noreturn]] void fail(std::string_view what, int error) const;

  std::filesystem::path path_;
  UniqueFd file_;
  off_t end_ = 0;  // behind the last whole record
  bool write_behind_ = false;
  Table table_;
};

}  // namespace tutti::store
