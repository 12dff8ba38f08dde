// interfaces_test.cpp: which interface is chosen, by table.
// SPDX-License-Identifier: Apache-2.0
#include "wire/interfaces.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tutti/error.hpp>

namespace tutti::wire {
namespace {

using testing::HasSubstr;

Address numeric(std::string_view host, std::uint16_t port = 0) { return Address::from_numeric(host, port).value(); }

std::vector<Interface> a_cluster_node() {
  return {{.name = "lo", .address = numeric("127.0.0.1"), .prefix_bits = 8},
          {.name = "docker0", .address = numeric("172.17.0.1"), .prefix_bits = 16},
          {.name = "eth0", .address = numeric("fe80::5"), .prefix_bits = 64},
          {.name = "eth0", .address = numeric("2001:db8::5"), .prefix_bits = 64},
          {.name = "eth0", .address = numeric("192.168.1.5"), .prefix_bits = 24},
          {.name = "ib0", .address = numeric("10.1.0.5"), .prefix_bits = 16},
          {.name = "ib1", .address = numeric("10.2.0.5"), .prefix_bits = 16, .up = false}};
}

struct Row {
  std::string because;
  BindWish wish;
  std::string expected;
};

TEST(ChooseAddress, FollowsItsTable) {
  const std::vector<Row> table = {
      {"nothing asked: the first real IPv4 interface, not docker0", {}, "192.168.1.5"},
      {"a name", {.wish = "ib0"}, "10.1.0.5"},
      {"a network", {.wish = "10.1.0.0/16"}, "10.1.0.5"},
      {"an address", {.wish = "2001:db8::5"}, "2001:db8::5"},
      {"a name with several addresses: global IPv4 first", {.wish = "eth0"}, "192.168.1.5"},
      {"the second choice, because the first is down", {.wish = "ib1,ib0"}, "10.1.0.5"},
      {"what was asked for, though virtual", {.wish = "docker0"}, "172.17.0.1"},
      {"what was asked for, though the meeting point is elsewhere",
       {.wish = "ib0", .meeting_point = numeric("192.168.1.9", 80), .route = numeric("192.168.1.5")},
       "10.1.0.5"},
      {"all on this machine", {.meeting_point = numeric("127.0.0.1", 29500)}, "127.0.0.1"},
      {"all on this machine, IPv6", {.meeting_point = numeric("::1", 29500)}, "::1"},
      {"the meeting point is an address of ours", {.meeting_point = numeric("10.1.0.5", 80)}, "10.1.0.5"},
      {"the way to the meeting point",
       {.meeting_point = numeric("10.1.0.9", 80), .route = numeric("10.1.0.5")},
       "10.1.0.5"},
      {"no route is known", {.meeting_point = numeric("10.9.0.9", 80)}, "192.168.1.5"},
      {"a meeting point on all interfaces says nothing", {.meeting_point = numeric("0.0.0.0", 80)}, "192.168.1.5"},
  };
  for (const Row& row : table) {
    const Address chosen = choose_address(a_cluster_node(), row.wish);
    EXPECT_EQ(chosen.host(), row.expected) << row.because;
    EXPECT_EQ(chosen.port(), 0) << row.because;
  }
}

TEST(ChooseAddress, AMachineWithoutANetworkUsesLoopback) {
  EXPECT_TRUE(choose_address({}, {}).is_loopback());
  EXPECT_TRUE(choose_address({{.name = "veth12", .address = numeric("10.0.0.1")}}, {}).is_loopback());
}

TEST(ChooseAddress, AWishThatFitsNothingListsWhatThereIs) {
  for (const std::string wish : {"eth7", "ib1", "10.9.0.0/16", "10.1.0.0/x", "1.2.3.4"}) {
    try {
      (void)choose_address(a_cluster_node(), {.wish = wish});
      ADD_FAILURE() << wish;
    } catch (const RendezvousError& error) {
      EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("'" + wish + "'"), HasSubstr("ib0 10.1.0.5/16")));
    }
  }
}

TEST(Interfaces, ThisMachineHasLoopback) {
  const auto interfaces = list_interfaces();
  const bool found = std::any_of(interfaces.begin(), interfaces.end(), [](const Interface& entry) {
    return entry.address == Address::loopback() && entry.prefix_bits == 8 && entry.up;
  });
  EXPECT_TRUE(found);
}

TEST(Interfaces, TheWayToLoopbackIsLoopback) { EXPECT_EQ(route_to(Address::loopback()), Address::loopback()); }

}  // namespace
}  // namespace tutti::wire
