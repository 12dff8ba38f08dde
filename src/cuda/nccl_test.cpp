// nccl_test.cpp: finding NCCL, and saying what is the matter with what was found.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/nccl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tutti::nccl {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// An empty folder as long as the test lasts.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("tutti_nccl_" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string add(const fs::path& file) const {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << "no library";
    return path_ / file;
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Found open_old(const char* version) {
  setenv("TUTTI_TEST_NCCL_VERSION", version, 1);  // NOLINT(concurrency-mt-unsafe): one thread
  return open({{"TUTTI_NCCL_LIBRARY", TUTTI_OLD_NCCL}});
}

TEST(Nccl, IsNotLookedForWhereNoneIsAskedFor) {
  const Found found = open({{"TUTTI_NCCL_LIBRARY", "none"}});
  EXPECT_EQ(found.functions, nullptr);
  EXPECT_THAT(found.problem, HasSubstr("TUTTI_NCCL_LIBRARY=none"));
}

TEST(Nccl, ThatIsNotThereIsNamed) {
  const Found found = open({{"TUTTI_NCCL_LIBRARY", "/nowhere/libnccl.so.2"}});
  EXPECT_EQ(found.functions, nullptr);
  EXPECT_THAT(found.problem, AllOf(HasSubstr("NCCL is not there"), HasSubstr("/nowhere/libnccl.so.2"),
                                   HasSubstr("pip install nvidia-nccl")));
}

TEST(Nccl, ThatIsTooOldIsNamedWithItsVersion) {
  EXPECT_THAT(open_old("21703").problem, AllOf(HasSubstr("is NCCL 2.17.3"), HasSubstr("2.18.0 or newer")));
  EXPECT_THAT(open_old("2708").problem, HasSubstr("is NCCL 2.7.8"));
}

TEST(Nccl, ThatLacksAFunctionIsNamedWithTheFunction) {
  const Found found = open_old("22809");
  EXPECT_EQ(found.functions, nullptr);
  EXPECT_THAT(found.problem, AllOf(HasSubstr("NCCL 2.28.9"), HasSubstr("has no ncclGetUniqueId")));
}

TEST(Nccl, IsFoundInPackagesOfPython) {
  const Folder folder;
  const std::string beside = folder.add("own/site-packages/nvidia/nccl/lib/libnccl.so.2");
  const std::string virtual_environment = folder.add("venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2");
  const std::string interpreter = folder.add("usr/lib/python3/dist-packages/nvidia/nccl/lib/libnccl.so.2");
  const auto in_folder = [&](std::vector<std::string> files) {
    std::erase_if(files, [&](const std::string& file) { return !file.starts_with(folder.path().string()); });
    return files;
  };
  EXPECT_THAT(in_folder(packaged_files(folder.path() / "usr/bin/python3", folder.path() / "own/site-packages/tutti/lib",
                                       {{"VIRTUAL_ENV", (folder.path() / "venv").string()}})),
              ElementsAre(beside, virtual_environment, interpreter));
}

// The real library has no other size of this struct that begins with these members; see nccl.h.
TEST(Nccl, HasTheBinaryInterfaceOfItsHeader) {
  EXPECT_EQ(offsetof(Config, magic), 8u);
  EXPECT_EQ(offsetof(Config, blocking), 16u);
  EXPECT_EQ(offsetof(Config, net_name), 32u);
  EXPECT_EQ(offsetof(Config, split_share), 40u);
  EXPECT_EQ(sizeof(UniqueId), 128u);
}

}  // namespace
}  // namespace tutti::nccl
