// file_store_test.cpp: the file store among processes, killed writers, full disks and files that are not its own.
// SPDX-License-Identifier: Apache-2.0
#include "store/file_store.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include <tutti/error.hpp>

#include "base/unique_fd.hpp"

namespace tutti {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

TimePoint in(Duration wait) { return std::chrono::steady_clock::now() + wait; }
TimePoint soon() { return in(20s); }

class FileStoreTest : public testing::Test {
 protected:
  FileStoreTest() {
    std::string pattern = testing::TempDir() + "tutti_file_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ / "meeting";
  }
  ~FileStoreTest() override { std::filesystem::remove_all(folder_); }

  template <class Failure, class Function>
  static std::string error_of(Function call) {
    try {
      call();
    } catch (const Failure& error) {
      return error.what();
    }
    return "no such error";
  }

  std::filesystem::path folder_, path_;
};

TEST_F(FileStoreTest, ProcessesCountTogether) {
  constexpr int processes = 4, rounds = 50;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const auto store = file_store(path_);
      for (int round = 0; round < rounds; ++round) (void)store->add("n", 1, soon());
      _exit(store->get("n", soon()).empty() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(file_store(path_)->get("n", soon()), std::to_string(processes * rounds));
}

TEST_F(FileStoreTest, InAFolderItTakesAFileOfItsOwn) {
  file_store(folder_)->set("k", "v", soon());
  EXPECT_TRUE(std::filesystem::exists(folder_ / "tutti_store"));
  struct stat status {};
  ASSERT_EQ(stat((folder_ / "tutti_store").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 077, 0u);
}

TEST_F(FileStoreTest, WhatAKilledWriterLeftIsCutOff) {
  const auto store = file_store(path_);
  store->set("k", "whole", soon());
  const auto whole = std::filesystem::file_size(path_);
  store->set("k", "torn", soon());
  const auto two = std::filesystem::file_size(path_);
  for (auto cut = two - 1; cut > whole; --cut) {
    const std::filesystem::path copy = folder_ / ("cut" + std::to_string(cut));
    std::filesystem::copy_file(path_, copy);
    std::filesystem::resize_file(copy, cut);
    const auto reader = file_store(copy), writer = file_store(copy);
    EXPECT_EQ(reader->get("k", soon()), "whole");
    writer->set("k2", "next", soon());
    EXPECT_EQ(reader->get("k2", soon()), "next");
    EXPECT_EQ(reader->get("k", soon()), "whole");
  }
}

TEST_F(FileStoreTest, AFileThatIsNoStoreIsRefusedAndLeftAlone) {
  std::ofstream(path_) << "a letter";
  chmod(path_.c_str(), 0600);
  const auto store = file_store(path_);
  EXPECT_THAT(error_of<RendezvousError>([&] { store->set("k", "v", soon()); }),
              AllOf(HasSubstr(path_.string()), HasSubstr("no store")));
  EXPECT_EQ(std::filesystem::file_size(path_), 8u);
}

TEST_F(FileStoreTest, DamageIsNoticed) {
  file_store(path_)->set("k", "a value of some length", soon());
  std::fstream file(path_, std::ios::in | std::ios::out);
  file.seekp(-3, std::ios::end);
  file.put('!');
  file.close();
  EXPECT_THAT(error_of<RendezvousError>([&] { (void)file_store(path_)->try_get("k", soon()); }), HasSubstr("damaged"));
}

TEST_F(FileStoreTest, AFileRemovedInUseIsAnErrorAndNotAWait) {
  const auto store = file_store(path_);
  store->set("k", "v", soon());
  std::filesystem::remove(path_);
  EXPECT_THAT(error_of<RendezvousError>([&] { (void)store->get("k2", soon()); }), HasSubstr("was removed"));
}

TEST_F(FileStoreTest, AFileThatOthersMayWriteIsRefused) {
  file_store(path_)->set("k", "v", soon());
  chmod(path_.c_str(), 0620);
  EXPECT_THROW((void)file_store(path_), AuthenticationError);
}

TEST_F(FileStoreTest, WhereItCannotBeMadeTheErrorNamesPathAndReason) {
  EXPECT_THAT(error_of<RendezvousError>([&] { (void)file_store(folder_ / "no" / "such"); }),
              AllOf(HasSubstr((folder_ / "no" / "such").string()), HasSubstr("No such file or directory")));
  EXPECT_THAT(error_of<RendezvousError>([&] { (void)file_store("/dev/full"); }), HasSubstr("not a regular file"));
}

TEST_F(FileStoreTest, ALockThatIsNeverGivenBackIsATimeout) {
  const auto store = file_store(path_);
  const UniqueFd holder(open(path_.c_str(), O_RDWR | O_CLOEXEC));
  struct flock whole {};
  whole.l_type = F_WRLCK;
  ASSERT_EQ(fcntl(holder.get(), F_OFD_SETLK, &whole), 0);
  EXPECT_THAT(error_of<Timeout>([&] { store->set("k", "v", in(30ms)); }), AllOf(HasSubstr("'k'"), HasSubstr("locked")));
}

// A limit on the size of files stands in for a full disk where none can be mounted: both fail in the middle of a write.
TEST_F(FileStoreTest, AFileThatCannotGrowIsAnErrorThatLeavesTheStoreAsItWas) {
  const auto in_child = [&] {
    signal(SIGXFSZ, SIG_IGN);
    const auto store = file_store(path_);
    store->set("k", "before", soon());
    const rlimit limit{.rlim_cur = 5000, .rlim_max = 5000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string error = error_of<RendezvousError>([&] { store->set("k", std::string(10000, 'x'), soon()); });
    const bool named =
        error.find(path_.string()) != std::string::npos && error.find("File too large") != std::string::npos;
    const bool kept = store->get("k", soon()) == "before" && file_store(path_)->get("k", soon()) == "before";
    store->set("k", "after", soon());
    _exit(named && kept && file_store(path_)->get("k", soon()) == "after" ? 0 : 1);
  };
  EXPECT_EXIT(in_child(), testing::ExitedWithCode(0), "");
}

TEST_F(FileStoreTest, AFullDiskIsAnErrorThatSaysSo) {
  const std::filesystem::path disk = folder_ / "disk";
  std::filesystem::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "may not mount a small disk";
  {
    const auto store = file_store(disk / "meeting");
    store->set("k", "before", soon());
    const std::string error = error_of<RendezvousError>([&] { store->set("k", std::string(200'000, 'x'), soon()); });
    EXPECT_THAT(error, AllOf(HasSubstr((disk / "meeting").string()), HasSubstr("No space left on device (errno 28)")));
    EXPECT_EQ(store->get("k", soon()), "before");
    store->set("k", "after", soon());
    EXPECT_EQ(file_store(disk / "meeting")->get("k", soon()), "after");
  }
  umount(disk.c_str());
}

}  // namespace
}  // namespace tutti
