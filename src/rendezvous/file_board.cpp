// file_board.cpp: leaving and finding a record in a file.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/file_board.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <thread>

#include <tutti/error.hpp>

#include "base/unique_fd.hpp"
#include "wire/trusted_file.hpp"

namespace tutti::rendezvous {
namespace {

using std::chrono::milliseconds;

[[noreturn]] void throw_file(std::string_view what, const std::string& path, int error) {
  const std::string_view hint = error == ENOSPC || error == EDQUOT || error == EFBIG
                                    ? "free some space, or meet at another path"
                                    : "check the folder and its permissions, or meet at another path";
  throw RendezvousError(
      fmt::format("cannot {} the meeting file {}: {}; {}", what, path, std::generic_category().message(error), hint));
}

// A file under a name of its own until it is complete.
class NewFile {
 public:
  explicit NewFile(const std::string& beside) : path_(beside + ".XXXXXX"), beside_(beside) {
    file_.reset(mkostemp(path_.data(), O_CLOEXEC));
    if (!file_) throw_file("make", beside_, errno);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }

  void write(std::string_view text) {
    const ssize_t written = ::write(file_.get(), text.data(), text.size());
    if (written < 0) throw_file("write", beside_, errno);
    if (static_cast<std::size_t>(written) != text.size()) throw_file("write", beside_, ENOSPC);
    if (fsync(file_.get()) != 0) throw_file("write", beside_, errno);
  }
  void rename_to_place() {
    if (rename(path_.c_str(), beside_.c_str()) != 0) throw_file("put in place", beside_, errno);
    path_.clear();
  }

 private:
  std::string path_, beside_;
  UniqueFd file_;
};

class FileBoard : public Board {
 public:
  explicit FileBoard(std::filesystem::path path) : path_(path.string()) {}

  void post(const RendezvousRecord& record, TimePoint) override {
    refuse_other_peoples_files();
    NewFile file(path_);
    file.write(record.text() + '\n');
    file.rename_to_place();
    posted_nonce_ = record.nonce;
  }

  // A file has no bell to ring, least of all on a network file system: look again, ever more rarely.
  RendezvousRecord fetch(TimePoint deadline) override {
    for (milliseconds pause(1);; pause = std::min(pause * 2, milliseconds(50))) {
      if (auto record = read()) return *std::move(record);
      const TimePoint now = std::chrono::steady_clock::now();
      if (now >= deadline) {
        throw RendezvousError(
            fmt::format("rank 0 left no note in {}; check that rank 0 was started, with the same path "
                        "and on the same file system",
                        path_));
      }
      std::this_thread::sleep_for(std::min<Duration>(pause, deadline - now));
    }
  }

  std::optional<RendezvousRecord> overwritten_by() override {
    auto record = read();
    return record && record->nonce != posted_nonce_ ? record : std::nullopt;
  }

  void clear() override {
    const auto record = read();
    if (record && record->nonce == posted_nonce_) unlink(path_.c_str());
  }

  [[nodiscard]] std::string describe() const override { return "a note in " + path_; }

 private:
  static constexpr std::size_t record_bytes_max = 1024;

  // A record leads this rank to whom it meets, so that nobody else may have written it. What is no record leads nowhere.
  [[nodiscard]] std::optional<std::string> contents() const {
    const UniqueFd file = wire::open_trusted(path_);
    if (!file && errno == ENOENT) return std::nullopt;
    if (!file && errno == ELOOP) {
      throw AuthenticationError(fmt::format(
          "the meeting file {} is a symbolic link, and nobody knows whose; remove it, or meet at another path", path_));
    }
    if (!file) throw_file("read", path_, errno);
    std::array<char, record_bytes_max> text{};
    const ssize_t bytes = ::read(file.get(), text.data(), text.size());
    if (bytes < 0 && errno == ESTALE) return std::nullopt;  // replaced on a network file system while we looked
    if (bytes < 0) throw_file("read", path_, errno);
    std::string result(text.data(), static_cast<std::size_t>(bytes));
    if (is_record(result)) wire::check_trusted(file.get(), path_, "the meeting file", wire::Others::may_not_write);
    return result;
  }

  [[nodiscard]] std::optional<RendezvousRecord> read() const {
    auto text = contents();
    if (!text || !text->ends_with('\n')) return std::nullopt;
    text->pop_back();
    return RendezvousRecord::parse(*text);
  }

  static bool is_record(std::string_view text) { return text.starts_with("tutti-note-"); }

  void refuse_other_peoples_files() const {
    const auto text = contents();
    if (!text || text->empty() || is_record(*text)) return;
    throw RendezvousError(
        fmt::format("{} is there already and is no meeting file of an earlier run; remove it, or meet "
                    "at another path",
                    path_));
  }

  std::string path_, posted_nonce_;
};

}  // namespace

std::unique_ptr<Board> make_file_board(std::filesystem::path path) {
  return std::make_unique<FileBoard>(std::move(path));
}

}  // namespace tutti::rendezvous
