// secret_test.cpp: secrets stay secret, and the key file is one for all or refused.
// SPDX-License-Identifier: Apache-2.0
#include "wire/secret.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include <tutti/error.hpp>

namespace tutti::wire {
namespace {

using testing::HasSubstr;

class KeyFile : public testing::Test {
 protected:
  KeyFile() {
    std::string pattern = testing::TempDir() + "tutti_key_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ / ".config" / "tutti" / "key";
  }
  ~KeyFile() override { std::filesystem::remove_all(folder_); }

  std::string error_of_reading() {
    try {
      (void)key_file_secret(path_);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path folder_, path_;
};

TEST(Secret, ComesBackFromItsHexadecimalText) {
  const Secret secret = make_secret();
  EXPECT_EQ(Secret::from_hex(secret.hex()), secret);
  EXPECT_EQ(Secret::from_hex("  " + secret.hex() + "\n"), secret);
  EXPECT_EQ(secret.hex().size(), 64u);
  EXPECT_FALSE(secret == make_secret());
}

TEST(Secret, IsNeverPrintedNotEvenWhenItIsWrong) {
  const Secret secret = make_secret();
  std::ostringstream out;
  out << secret;
  EXPECT_EQ(out.str(), "(secret)");
  const std::string almost = secret.hex().substr(1);
  try {
    (void)Secret::from_hex(almost);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), testing::Not(HasSubstr(almost)));
    EXPECT_THAT(error.what(), HasSubstr("63"));
  }
  EXPECT_THROW((void)Secret::from_hex(std::string(64, 'g')), InvalidArgument);
}

std::filesystem::path key_path(Environment::Variables variables) {
  return default_key_path(Environment(std::move(variables)));
}

TEST(Secret, TheKeyFileLiesWhereTheEnvironmentSays) {
  EXPECT_EQ(key_path({{"HOME", "/home/ada"}}), "/home/ada/.config/tutti/key");
  EXPECT_EQ(key_path({{"HOME", "/home/ada"}, {"XDG_CONFIG_HOME", "/cfg"}}), "/cfg/tutti/key");
  EXPECT_EQ(key_path({{"HOME", "/h"}, {"XDG_CONFIG_HOME", "cfg"}}), "/h/.config/tutti/key");
  EXPECT_THROW(key_path({}), RendezvousError);
}

TEST_F(KeyFile, IsMadeOnceWithPermissionsForItsOwnerOnly) {
  const Secret first = key_file_secret(path_);
  EXPECT_EQ(key_file_secret(path_), first);
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(status.st_nlink, 1u);
  const auto entries = std::filesystem::directory_iterator(path_.parent_path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1) << "a temporary file was left behind";
}

TEST_F(KeyFile, ThoseWhoMakeItAtTheSameTimeAgree) {
  std::vector<std::string> secrets(16);
  {
    std::vector<std::jthread> threads;
    for (auto& secret : secrets) threads.emplace_back([&] { secret = key_file_secret(path_).hex(); });
  }
  EXPECT_THAT(secrets, testing::Each(secrets.front()));
}

TEST_F(KeyFile, IsRefusedWhenOthersCanReadIt) {
  (void)key_file_secret(path_);
  for (const mode_t mode : {0640u, 0604u, 0620u, 0601u}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    EXPECT_THROW((void)key_file_secret(path_), AuthenticationError) << std::oct << mode;
  }
  EXPECT_THAT(error_of_reading(), HasSubstr("mode 0601"));
}

TEST_F(KeyFile, IsRefusedWhenItBelongsToSomebodyElse) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  (void)key_file_secret(path_);
  ASSERT_EQ(chown(path_.c_str(), 12345, static_cast<gid_t>(-1)), 0);
  EXPECT_THROW((void)key_file_secret(path_), AuthenticationError);
  EXPECT_THAT(error_of_reading(), HasSubstr("belongs to user 12345"));
}

TEST_F(KeyFile, IsRefusedWhenItHoldsSomethingElse) {
  std::filesystem::create_directories(path_.parent_path());
  std::ofstream(path_) << "hello";
  chmod(path_.c_str(), 0600);
  EXPECT_THAT(error_of_reading(), HasSubstr("does not hold 64 hexadecimal digits"));
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("/etc/passwd", path_);
  EXPECT_THROW((void)key_file_secret(path_), Error);
}

TEST_F(KeyFile, WhereItCannotBeMadeTheErrorNamesThePathAndTheReason) {
  std::ofstream(folder_ / ".config") << "a file where a folder should be";
  EXPECT_THROW((void)key_file_secret(path_), RendezvousError);
  EXPECT_THAT(error_of_reading(), testing::AllOf(HasSubstr(path_.string()), HasSubstr("Not a directory")));
  EXPECT_THROW((void)key_file_secret("/proc/tutti/key"), RendezvousError);
}

}  // namespace
}  // namespace tutti::wire
