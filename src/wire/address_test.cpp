// address_test.cpp: text becomes an address, or an error that says what is wrong with it.
// SPDX-License-Identifier: Apache-2.0
#include "wire/address.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tutti/error.hpp>

namespace tutti::wire {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TimePoint soon(Duration wait = 10s) { return std::chrono::steady_clock::now() + wait; }

Address numeric(std::string_view host, std::uint16_t port = 0) {
  const auto address = Address::from_numeric(host, port);
  EXPECT_TRUE(address) << host;
  return address.value_or(Address());
}

TEST(Address, PrintsAsItIsWritten) {
  for (const std::string_view text : {"10.1.2.3:80", "127.0.0.1:0", "[::1]:65535", "[2001:db8::7]:22"}) {
    const HostPort where = HostPort::parse(text);
    EXPECT_EQ(where.text(), text);
    EXPECT_EQ(numeric(where.host, where.port).text(), text);
  }
  EXPECT_EQ(HostPort::parse("node-3.cluster:29500").host, "node-3.cluster");
}

TEST(Address, NamesAreNotNumbers) {
  EXPECT_FALSE(Address::from_numeric("localhost", 1));
  EXPECT_FALSE(Address::from_numeric("", 1));
  EXPECT_FALSE(Address::from_numeric("10.0.0.256", 1));
}

TEST(Address, MalformedTextIsAnErrorThatRepeatsIt) {
  for (const std::string text : {"host", "host:", ":80", "host:65536", "host:-1", "host:8x", "::1:80", "[]:80", ""}) {
    try {
      (void)HostPort::parse(text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr("'" + text + "'"));
    }
  }
}

TEST(Address, KnowsItsKind) {
  struct Row {
    const char* host;
    bool loopback, any, link_local;
  };
  for (const Row& row :
       {Row{"127.0.0.1", true, false, false}, Row{"127.9.9.9", true, false, false}, Row{"::1", true, false, false},
        Row{"::ffff:127.0.0.1", true, false, false}, Row{"0.0.0.0", false, true, false}, Row{"::", false, true, false},
        Row{"169.254.0.1", false, false, true}, Row{"fe80::1", false, false, true}, Row{"febf::1", false, false, true},
        Row{"10.0.0.1", false, false, false}, Row{"2001:db8::1", false, false, false}}) {
    EXPECT_EQ(numeric(row.host).is_loopback(), row.loopback) << row.host;
    EXPECT_EQ(numeric(row.host).is_any(), row.any) << row.host;
    EXPECT_EQ(numeric(row.host).is_link_local(), row.link_local) << row.host;
  }
}

TEST(Address, KnowsItsNetwork) {
  EXPECT_TRUE(numeric("10.1.2.3").in_subnet(numeric("10.1.0.0"), 16));
  EXPECT_FALSE(numeric("10.2.2.3").in_subnet(numeric("10.1.0.0"), 16));
  EXPECT_TRUE(numeric("10.1.31.3").in_subnet(numeric("10.1.16.0"), 20));
  EXPECT_FALSE(numeric("10.1.32.3").in_subnet(numeric("10.1.16.0"), 20));
  EXPECT_TRUE(numeric("2001:db8::7").in_subnet(numeric("2001:db8::"), 32));
  EXPECT_FALSE(numeric("10.1.2.3").in_subnet(numeric("::"), 0));
  EXPECT_TRUE(numeric("10.1.2.3").in_subnet(numeric("0.0.0.0"), 0));
  EXPECT_FALSE(numeric("10.1.2.3").in_subnet(numeric("10.1.2.3"), 33));
}

TEST(Address, EqualityIncludesPortAndFamily) {
  EXPECT_EQ(Address::loopback(80), numeric("127.0.0.1", 80));
  EXPECT_EQ(Address::loopback_v6(80), numeric("::1", 80));
  EXPECT_FALSE(Address::loopback(80) == Address::loopback(81));
  EXPECT_FALSE(Address::loopback(80) == Address::loopback_v6(80));
}

TEST(Resolve, LocalhostIsThisMachine) {
  for (const Address& address : resolve({"localhost", 29500}, soon())) {
    EXPECT_TRUE(address.is_loopback()) << address.text();
    EXPECT_EQ(address.port(), 29500);
  }
  EXPECT_EQ(resolve({"10.0.0.1", 5}, TimePoint{}).front().text(), "10.0.0.1:5") << "numbers need no time";
}

TEST(Resolve, AHostThatDoesNotResolveIsNamed) {
  try {
    (void)resolve({"no-such-host.invalid", 1}, soon());
    FAIL();
  } catch (const RendezvousError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'no-such-host.invalid' does not resolve"));
  }
  EXPECT_THROW((void)resolve({"", 1}, soon()), RendezvousError);
}

TEST(Resolve, EndsAtTheDeadline) {
  try {
    (void)resolve({"no-such-host.invalid", 1}, TimePoint{});
    FAIL();
  } catch (const RendezvousError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no-such-host.invalid"));
  }
}

}  // namespace
}  // namespace tutti::wire
