// protocol_test.cpp: messages of the tcp store come back as they were, and bad ones are refused from their heads.
// SPDX-License-Identifier: Apache-2.0
#include "store/protocol.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "store/service.hpp"

namespace tutti::store {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::vector<Request> parse(std::string_view stream, std::size_t piece) {
  RequestStream parser;
  std::vector<Request> requests;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    parser.feed(bytes_of(stream.substr(at, piece)), [&](Request&& request) { requests.push_back(std::move(request)); });
  }
  return requests;
}

// A request with the lengths of its parts as given, whatever its payload is.
std::string forged(Request::Kind kind, std::uint32_t key_bytes, std::uint32_t expected_bytes,
                   std::uint64_t payload_bytes) {
  ByteWriter extra;
  extra.u64(1).u32(key_bytes).u32(expected_bytes).i64(0);
  const wire::EncodedFrame head({.type = static_cast<std::uint8_t>(kind), .payload_bytes = payload_bytes},
                                extra.data());
  return {reinterpret_cast<const char*>(head.bytes().data()), head.bytes().size()};
}

TEST(Protocol, RequestsComeBackHoweverTheStreamIsCut) {
  const std::string stream =
      encode({.kind = Request::Kind::set, .id = 1, .key = "key", .value = "value"}) +
      encode({.kind = Request::Kind::compare_set, .id = 2, .key = "k", .expected = "", .value = "v"}) +
      encode({.kind = Request::Kind::add, .id = 3, .key = "", .amount = -5});
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    const auto requests = parse(stream, piece);
    ASSERT_EQ(requests.size(), 3u);
    EXPECT_EQ(requests[0].key, "key");
    EXPECT_EQ(requests[0].value, "value");
    EXPECT_EQ(requests[0].expected, std::nullopt);
    EXPECT_EQ(requests[1].expected, "");
    EXPECT_EQ(requests[1].value, "v");
    EXPECT_EQ(requests[2].id, 3u);
    EXPECT_EQ(requests[2].amount, -5);
  }
}

TEST(Protocol, BadRequestsAreRefusedFromTheirHeadAlone) {
  constexpr std::uint32_t none = 0xffffffff;
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"an unknown kind", forged(static_cast<Request::Kind>(99), 1, none, 1)},
      {"a key over the limit", forged(Request::Kind::set, key_bytes_max + 1, none, key_bytes_max + 1)},
      {"a value over the limit", forged(Request::Kind::set, 1, none, 1 + value_bytes_max + 1)},
      {"a payload over every limit", forged(Request::Kind::set, 1, none, 1ull << 60)},
      {"a key longer than the payload", forged(Request::Kind::get, 10, none, 5)},
      {"lengths whose sum overflows 32 bits", forged(Request::Kind::compare_set, 10, 0xfffffffe, 8)},
      {"an expected value over the limit",
       forged(Request::Kind::compare_set, 1, value_bytes_max + 1, value_bytes_max + 2)},
      {"a value in a get", forged(Request::Kind::get, 1, none, 2)},
      {"an expected value in a set", forged(Request::Kind::set, 1, 1, 2)},
  };
  for (const auto& [what, head] : bad) EXPECT_THROW(parse(head, head.size()), MalformedMessage) << what;
}

TEST(Protocol, ADamagedPayloadIsNoticed) {
  std::string stream = encode({.kind = Request::Kind::set, .id = 1, .key = "key", .value = "value"});
  stream.back() = static_cast<char>(stream.back() ^ 1);
  EXPECT_THROW(parse(stream, stream.size()), MalformedMessage);
}

TEST(Service, WakesThoseWhoWaitAndForgetsThoseWhoLeft) {
  Service service;
  const auto get = [](std::uint64_t id) { return Request{.kind = Request::Kind::get, .id = id, .key = "k"}; };
  EXPECT_TRUE(service.handle(1, get(10)).empty());
  EXPECT_TRUE(service.handle(2, get(20)).empty());
  EXPECT_TRUE(service.handle(3, get(30)).empty());
  EXPECT_TRUE(service.handle(3, {.kind = Request::Kind::wait, .id = 31, .key = "k"}).empty());
  service.gone(1);
  EXPECT_TRUE(service.handle(3, {.kind = Request::Kind::cancel, .id = 30}).empty());
  EXPECT_EQ(service.parked_count(), 2u);

  const auto answers = service.handle(4, {.kind = Request::Kind::set, .id = 40, .key = "k", .value = "v"});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].client, 4u);
  EXPECT_EQ(answers[1].client, 2u);
  EXPECT_EQ(answers[1].reply.id, 20u);
  EXPECT_EQ(*answers[1].reply.value, "v");
  EXPECT_EQ(answers[2].reply.id, 31u);
  EXPECT_EQ(answers[2].reply.value, nullptr) << "who only waits is spared the bytes";
  EXPECT_EQ(service.parked_count(), 0u);
}

TEST(Service, RefusesToParkOneIdTwiceAndAnswersMistakes) {
  Service service;
  (void)service.handle(1, {.kind = Request::Kind::get, .id = 1, .key = "a"});
  EXPECT_THROW((void)service.handle(1, {.kind = Request::Kind::get, .id = 1, .key = "b"}), MalformedMessage);
  service.gone(1);
  EXPECT_EQ(service.parked_count(), 0u);
  (void)service.handle(1, {.kind = Request::Kind::set, .id = 2, .key = "n", .value = "text"});
  const auto answers = service.handle(1, {.kind = Request::Kind::add, .id = 3, .key = "n", .amount = 1});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].reply.kind, Reply::Kind::refused);
}

}  // namespace
}  // namespace tutti::store
