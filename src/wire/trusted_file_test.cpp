// trusted_file_test.cpp: a file that another user may have planted is not opened.
// SPDX-License-Identifier: Apache-2.0
#include "wire/trusted_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include <tutti/error.hpp>

namespace tutti::wire {
namespace {

using testing::HasSubstr;

class TrustedFile : public testing::Test {
 protected:
  TrustedFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tutti-trusted-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::filesystem::create_directories(folder_ / "real/deep");
    std::ofstream(folder_ / "real/deep/file") << "text";
    chmod((folder_ / "real/deep/file").c_str(), 0600);
  }
  ~TrustedFile() override {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  static std::string error_of(const std::filesystem::path& path, Others others = Others::may_not_read_or_write) {
    try {
      const UniqueFd file = open_trusted(path);
      if (!file) return std::string("errno ") + std::to_string(errno);
      check_trusted(file.get(), path, "the file", others);
      return "";
    } catch (const AuthenticationError& error) {
      return error.what();
    }
  }

  std::filesystem::path folder_;
};

TEST_F(TrustedFile, OpensThroughLinksOfTheUsersOwn) {
  std::filesystem::create_symlink("real", folder_ / "relative");
  std::filesystem::create_symlink(folder_ / "relative" / "deep", folder_ / "absolute");
  EXPECT_EQ(error_of(folder_ / "real/deep/file"), "");
  EXPECT_EQ(error_of(folder_ / "relative/deep/../deep/./file"), "");
  EXPECT_EQ(error_of(folder_ / "absolute/file"), "");
}

TEST_F(TrustedFile, FollowsNoLinkInPlaceOfTheFileItself) {
  std::filesystem::create_symlink("real/deep/file", folder_ / "link");
  EXPECT_EQ(error_of(folder_ / "link"), "errno " + std::to_string(ELOOP));
}

TEST_F(TrustedFile, FollowsNoLinkThatAnotherUserMade) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make links for others";
  std::filesystem::create_symlink("real", folder_ / "planted");
  ASSERT_EQ(lchown((folder_ / "planted").c_str(), 12345, static_cast<gid_t>(-1)), 0);
  EXPECT_THAT(error_of(folder_ / "planted/deep/file"),
              testing::AllOf(HasSubstr("\"planted\""), HasSubstr("symbolic link that user 12345 made")));
}

TEST_F(TrustedFile, SaysWhereTheWayBreaksOff) {
  EXPECT_EQ(error_of(folder_ / "not/there"), "errno " + std::to_string(ENOENT));
  EXPECT_EQ(error_of(folder_ / "real/deep/file/below"), "errno " + std::to_string(ENOTDIR));
  std::filesystem::create_symlink("loop", folder_ / "loop");
  EXPECT_EQ(error_of(folder_ / "loop/file"), "errno " + std::to_string(ELOOP));
}

TEST_F(TrustedFile, IsARegularFileOfTheUsersOwnThatOthersCannotUse) {
  const auto path = folder_ / "real/deep/file";
  chmod(path.c_str(), 0644);
  EXPECT_THAT(error_of(path), HasSubstr("mode 0644: others can use it"));
  EXPECT_EQ(error_of(path, Others::may_not_write), "");
  chmod(path.c_str(), 0662);
  EXPECT_THAT(error_of(path, Others::may_not_write), HasSubstr("mode 0662: others can write it"));
  EXPECT_THAT(error_of(folder_ / "real/deep"), HasSubstr("not a regular file"));
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(chown(path.c_str(), 12345, static_cast<gid_t>(-1)), 0);
  EXPECT_THAT(error_of(path), HasSubstr("belongs to user 12345"));
}

}  // namespace
}  // namespace tutti::wire
