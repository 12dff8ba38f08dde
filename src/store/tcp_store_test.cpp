// tcp_store_test.cpp: a client, and the processes that are forked from it.
// SPDX-License-Identifier: Apache-2.0
#include "store/tcp_store.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string_view>

#include <tutti/error.hpp>

#include "store/tcp_server.hpp"

namespace tutti {
namespace {

TimePoint soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }

// It would take the replies that its parent waits for.
TEST(TcpStore, AForkOfAClientIsToldToConnectAgain) {
  const wire::Secret secret = wire::make_secret();
  const TcpStoreServer server({.secret = secret});
  const std::shared_ptr<Store> store =
      tcp_store({.server = {server.address().host(), server.address().port()}, .secret = secret, .deadline = soon()});
  const pid_t child = fork();
  if (child == 0) {
    try {
      store->set("k", "child", soon());
    } catch (const RendezvousError& error) {
      _exit(std::string_view(error.what()).find("connect again here") != std::string_view::npos ? 7 : 1);
    }
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  store->set("k", "parent", soon());
  EXPECT_EQ(store->get("k", soon()), "parent");
}

}  // namespace
}  // namespace tutti
