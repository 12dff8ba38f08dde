// unauthenticated_test.cpp: port scans and random bytes on every port the job listens on; the job goes on.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "base/random.hpp"
#include "base/unique_fd.hpp"
#include "outcomes.hpp"
#include "wire/address.hpp"

namespace tutti::contract {
namespace {

using namespace std::chrono_literals;

/// The inodes of this process's sockets.
std::set<std::string> own_sockets() {
  std::set<std::string> inodes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
    if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
  }
  return inodes;
}

struct Listening {
  std::string host_hex;
  std::uint16_t port = 0;
};

/// What this process listens on, as the kernel lists it.
std::vector<Listening> own_listeners() {
  const auto own = own_sockets();
  std::vector<Listening> result;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, skip, inode;
    words >> number >> local >> remote >> state;
    for (int i = 0; i < 6; ++i) words >> inode;
    constexpr std::string_view listening = "0A";
    if (state == listening && own.contains(inode)) {
      result.push_back({local.substr(0, 8), static_cast<std::uint16_t>(std::stoi(local.substr(9), nullptr, 16))});
    }
  }
  return result;
}

/// Connects, says `bytes`, and hangs up (or stays, if the caller keeps the descriptor).
UniqueFd pester(std::uint16_t port, const std::string& bytes) {
  const wire::Address address = wire::Address::loopback(port);
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(socket.get(), address.data(), address.size()), 0);
  if (!bytes.empty()) (void)::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return socket;
}

TEST(UnauthenticatedConnections, OnEveryListeningPortDoNoHarm) {
  const auto world = make_thread_world({.size = 3, .timeout = 20s});
  const auto listeners = own_listeners();
  EXPECT_GE(listeners.size(), 3u);
  Random random(7);
  std::vector<UniqueFd> silent;
  for (const Listening& listener : listeners) {
    EXPECT_EQ(listener.host_hex, "0100007F") << "a port that is open to other machines";
    for (int i = 0; i < 20; ++i) pester(listener.port, "");  // a port scan
    for (int i = 0; i < 20; ++i) {
      std::string noise;
      for (std::uint64_t n = random.below(4096); n > 0; --n) noise.push_back(static_cast<char>(random.next()));
      pester(listener.port, noise);
    }
    pester(listener.port, "GET / HTTP/1.1\r\n\r\n");
    for (int i = 0; i < 20; ++i) silent.push_back(pester(listener.port, ""));  // says nothing, and stays
  }
  world->run([](Group& g) {
    for (int i = 0; i < 20; ++i) {
      std::vector<float> x(50'000, 1.0f);
      g.all_reduce(x);
      EXPECT_EQ(x[49'999], 3.0f);
    }
    Group half = g.split(g.rank() % 2);  // new links, while strangers are at the door
    half.barrier();
  });
}

}  // namespace
}  // namespace tutti::contract
