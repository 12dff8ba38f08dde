// no_ucx_test.cpp: a build without UCX's headers says what to install.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tutti/error.hpp>

#include "link/ucx.hpp"

namespace tutti::link {
namespace {

TEST(NoUcx, says_what_to_install) {
  const UcxFindings found = find_ucx();
  EXPECT_THAT(found.problem, testing::HasSubstr("install UCX's headers (Debian: libucx-dev) and build again"));
  EXPECT_TRUE(found.version.empty());
  EXPECT_THROW(open_ucx({}), Unsupported);
  EXPECT_THROW(make_ucx_link({.secret = wire::make_secret()}), Unsupported);
}

}  // namespace
}  // namespace tutti::link
