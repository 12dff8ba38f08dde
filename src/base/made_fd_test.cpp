// made_fd_test.cpp: what was not made says why, and what to try.
// SPDX-License-Identifier: Apache-2.0
#include "base/made_fd.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <cerrno>

#include <tutti/error.hpp>

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string reason(int error) {
  try {
    errno = error;
    static_cast<void>(made(-1, "an eventfd"));
  } catch (const Error& refused) {
    return refused.what();
  }
  return "made";
}

TEST(MadeFd, IsWhatTheSystemCallGave) { EXPECT_TRUE(made(eventfd(0, EFD_CLOEXEC), "an eventfd")); }

TEST(MadeFd, SaysWhichLimitOrSandboxRefusedItAndWhatToTry) {
  EXPECT_THAT(reason(EMFILE), AllOf(HasSubstr("cannot make an eventfd"), HasSubstr("ulimit -n")));
  EXPECT_THAT(reason(ENFILE), HasSubstr("file-max"));
  EXPECT_THAT(reason(EPERM), AllOf(HasSubstr("Operation not permitted"), HasSubstr("seccomp profile")));
  EXPECT_THAT(reason(ENOSYS), HasSubstr("seccomp profile"));
}

}  // namespace
}  // namespace tutti
