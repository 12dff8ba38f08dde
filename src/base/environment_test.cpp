// environment_test.cpp: variables, and the texts that stand for sizes and durations.
// SPDX-License-Identifier: Apache-2.0
#include "base/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include <tutti/error.hpp>

namespace tutti {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Environment, of_the_process_holds_what_getenv_knows) {
  const char* path = std::getenv("PATH");
  ASSERT_NE(path, nullptr);
  EXPECT_EQ(Environment::of_process().get("PATH"), path);
}

TEST(Environment, the_secret_leaves_the_process_but_is_not_forgotten) {
  const std::string secret(64, '5'), later(64, '6');
  setenv("TUTTI_SECRET", secret.c_str(), 1);
  const char* const text = std::getenv("TUTTI_SECRET");
  Environment::conceal_secret_of_process();
  EXPECT_EQ(std::getenv("TUTTI_SECRET"), nullptr);
  EXPECT_EQ(text[0], '\0') << "it was only unset";
  EXPECT_EQ(Environment::of_process().get("TUTTI_SECRET"), secret);
  setenv("TUTTI_SECRET", later.c_str(), 1);
  EXPECT_EQ(Environment::of_process().get("TUTTI_SECRET"), later) << "what was given last counts";
  unsetenv("TUTTI_SECRET");
}

TEST(Environment, without_a_variable_gives_nothing) {
  const Environment environment{{"EMPTY", ""}};
  EXPECT_EQ(environment.get("MISSING"), std::nullopt);
  EXPECT_EQ(environment.get("EMPTY"), "");
  EXPECT_EQ(environment.integer("MISSING"), std::nullopt);
  EXPECT_EQ(environment.integer("EMPTY"), std::nullopt);
  EXPECT_EQ(environment.duration("EMPTY"), std::nullopt);
  EXPECT_EQ(environment.bytes("MISSING"), std::nullopt);
  EXPECT_EQ(environment.flag("EMPTY"), std::nullopt);
}

TEST(Environment, typed_getters_read_what_is_there) {
  const Environment environment{{"RANK", "3"}, {"WAIT", "30s"}, {"SIZE", "64M"}, {"ON", "yes"}, {"OFF", "0"}};
  EXPECT_EQ(environment.integer("RANK"), 3);
  EXPECT_EQ(environment.duration("WAIT"), 30s);
  EXPECT_EQ(environment.bytes("SIZE"), 64 << 20);
  EXPECT_EQ(environment.flag("ON"), true);
  EXPECT_EQ(environment.flag("OFF"), false);
}

TEST(Environment, a_bad_value_is_refused_with_name_value_and_what_is_accepted) {
  const Environment environment{{"X", "soon"}, {"PORT", "70000"}, {"RANK", "-1"}};
  EXPECT_THAT([&] { (void)environment.integer("X"); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("X=\"soon\""), HasSubstr("a whole number"))));
  EXPECT_THAT([&] { (void)environment.integer("PORT", 0, 65535); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("PORT=\"70000\""), HasSubstr("from 0 to 65535"))));
  EXPECT_THAT([&] { (void)environment.integer("RANK", 0); }, ThrowsMessage<InvalidArgument>(HasSubstr("0 or more")));
  EXPECT_THAT([&] { (void)environment.duration("X"); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("soon"), HasSubstr("250ms"))));
  EXPECT_THAT([&] { (void)environment.bytes("X"); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("soon"), HasSubstr("64K"))));
  EXPECT_THAT([&] { (void)environment.flag("X"); }, ThrowsMessage<InvalidArgument>(HasSubstr("true")));
}

TEST(ParseBytes, takes_powers_of_1024) {
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("1K"), 1024);
  EXPECT_EQ(parse_bytes("64KiB"), 65536);
  EXPECT_EQ(parse_bytes("2GB"), std::int64_t{2} << 30);
  EXPECT_EQ(parse_bytes("1.5M"), 1572864);
  EXPECT_EQ(parse_bytes("17B"), 17);
  EXPECT_EQ(parse_bytes("8388607T"), std::int64_t{8388607} << 40);
}

TEST(ParseBytes, refuses_everything_else) {
  for (const char* text : {"", "M", "-1", "+1", " 1", "1 M", "1X", "1MM", "5iB", "B", "1.2.3K", "0x10", "1e3", "nan",
                           "8388608T", "99999999999999999999"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(ParseDuration, takes_units_and_plain_seconds) {
  EXPECT_EQ(parse_duration("30"), 30s);
  EXPECT_EQ(parse_duration("30s"), 30s);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("10us"), 10us);
  EXPECT_EQ(parse_duration("7ns"), 7ns);
  EXPECT_EQ(parse_duration("2m"), 2min);
  EXPECT_EQ(parse_duration("1h"), 1h);
}

TEST(ParseDuration, refuses_everything_else) {
  for (const char* text : {"", "s", "-1s", "1d", "1 s", "inf", "ten", "9999999999h", ".5s"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(Format, bytes_and_durations_read_well) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(65536), "64 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1 MiB");
  EXPECT_EQ(format_bytes(std::int64_t{3} << 40), "3 TiB");
  EXPECT_EQ(format_duration(0ns), "0 ns");
  EXPECT_EQ(format_duration(1500us), "1.5 ms");
  EXPECT_EQ(format_duration(12us), "12 µs");
  EXPECT_EQ(format_duration(30s), "30 s");
  EXPECT_EQ(format_duration(999'999'999ns), "1 s");
  EXPECT_EQ(format_duration(10min), "10 min");
  EXPECT_EQ(format_duration(3h), "3 h");
}

}  // namespace
}  // namespace tutti
