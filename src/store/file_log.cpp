// file_log.cpp: reading, writing and locking the file of a file store.
// SPDX-License-Identifier: Apache-2.0
#include "store/file_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include <tutti/error.hpp>

namespace tutti::store {

namespace {

constexpr std::string_view title = "tutti store, version 1\n";

// -1 and errno as fcntl, EAGAIN if somebody else has it.
int lock(int file, short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  return fcntl(file, F_OFD_SETLK, &range);
}

class Unlocker {
 public:
  explicit Unlocker(int file) : file_(file) {}
  Unlocker(const Unlocker&) = delete;
  Unlocker& operator=(const Unlocker&) = delete;
  ~Unlocker() { lock(file_, F_UNLCK); }

 private:
  int file_;
};

std::size_t record_bytes(const Request& record) {
  constexpr std::size_t extra_bytes = 24;
  return wire::frame_head_bytes + extra_bytes + record.key.size() + record.value.size();
}

void apply(Table& table, Request&& record) {
  if (record.kind == Request::Kind::remove) {
    table.remove(record.key);
  } else {
    table.set(record.key, std::make_shared<const std::string>(std::move(record.value)));
  }
}

}  // namespace

FileLog::FileLog(const std::filesystem::path& path) : path_(path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored)) path_ /= "tutti_store";
  file_.reset(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!file_) fail("cannot be opened", errno);
  check_file();
  // Such a file system takes bytes it has no room for, and says so only when asked to write them out.
  struct statfs system {};
  write_behind_ = fstatfs(file_.get(), &system) == 0 && system.f_type == NFS_SUPER_MAGIC;
}

void FileLog::fail(std::string_view what, int error) const {
  const char* hint = error == ENOSPC || error == EDQUOT ? "; free some space, or meet in a file elsewhere"
                     : error == ENOENT                  ? "; make its folder first"
                     : error == ENOLCK                  ? "; this file system has no locks, meet elsewhere or by tcp"
                                                        : "";
  throw RendezvousError(fmt::format("the store file {} {}: {} (errno {}){}", path_.string(), what,
                                    std::generic_category().message(error), error, hint));
}

void FileLog::check_file() {
  struct stat status {};
  if (fstat(file_.get(), &status) != 0) fail("cannot be examined", errno);
  if (!S_ISREG(status.st_mode)) {
    throw RendezvousError(fmt::format("the store file {} is not a regular file", path_.string()));
  }
  if (status.st_uid != geteuid()) {
    throw AuthenticationError(
        fmt::format("the store file {} belongs to user {}, not to user {} who runs this: its content "
                    "is not to be trusted; use another path",
                    path_.string(), status.st_uid, geteuid()));
  }
  if ((status.st_mode & 022) != 0) {
    throw AuthenticationError(
        fmt::format("the store file {} has mode {:04o}: others can write it; run chmod go-w on it, or "
                    "use another path",
                    path_.string(), status.st_mode & 07777));
  }
}

bool FileLog::try_use(Access access, const std::function<void(Table&)>& use) {
  const short type = access == Access::append ? F_WRLCK : F_RDLCK;
  if (lock(file_.get(), type) != 0) {
    if (errno == EAGAIN || errno == EACCES || errno == EINTR) return false;
    fail("cannot be locked", errno);
  }
  const Unlocker unlocker(file_.get());
  catch_up();
  use(table_);
  return true;
}

void FileLog::catch_up() {
  struct stat status {};
  if (fstat(file_.get(), &status) != 0) fail("cannot be examined", errno);
  if (status.st_nlink == 0) fail("was removed while it was in use", ENOENT);
  if (status.st_size < end_) {
    throw RendezvousError(
        fmt::format("the store file {} became shorter while it was in use: another program wrote it, or two "
                    "jobs use one path",
                    path_.string()));
  }
  if (status.st_size > end_) read_records();
}

void FileLog::read_records() {
  RequestStream stream;
  off_t position = end_;
  std::array<char, 1 << 16> buffer;
  try {
    while (true) {
      const ssize_t got = pread(file_.get(), buffer.data(), buffer.size(), position);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("cannot be read", errno);
      if (got == 0) return;  // what the stream still holds is the torn record of a killed writer
      std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
      position += got;
      if (end_ == 0) {  // the title; it is written with the first record, so it may be torn, but not be another
        const std::string_view start = bytes.substr(0, title.size());
        if (start != title.substr(0, start.size())) throw MalformedMessage("it does not begin like one");
        if (start.size() < title.size()) return;
        bytes.remove_prefix(title.size());
        end_ = static_cast<off_t>(title.size());
      }
      stream.feed(std::as_bytes(std::span(bytes)), [&](Request&& record) {
        if (record.kind != Request::Kind::set && record.kind != Request::Kind::remove)
          throw MalformedMessage("no change");
        end_ += static_cast<off_t>(record_bytes(record));
        apply(table_, std::move(record));
      });
    }
  } catch (const MalformedMessage& error) {
    throw RendezvousError(fmt::format("the file {} is damaged or no store: {}; remove it, or use another path",
                                      path_.string(), error.what()));
  }
}

void FileLog::append(const Request& change) {
  std::string bytes = encode(change);
  if (end_ == 0) bytes.insert(0, title);
  write_at_end(bytes);
  end_ += static_cast<off_t>(bytes.size());
}

void FileLog::write_at_end(std::string_view bytes) {
  const auto take_back = [&](int error) {
    if (ftruncate(file_.get(), end_) != 0) error = errno;
    fail(fmt::format("does not take {} more bytes", bytes.size()), error);
  };
  if (ftruncate(file_.get(), end_) != 0) fail("cannot be written", errno);  // a torn record, if there is one
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written =
        pwrite(file_.get(), bytes.data() + done, bytes.size() - done, end_ + static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) take_back(errno);
    done += static_cast<std::size_t>(written);
  }
  if (write_behind_ && fdatasync(file_.get()) != 0) take_back(errno);
}

}  // namespace tutti::store
