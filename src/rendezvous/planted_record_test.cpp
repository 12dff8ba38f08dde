// planted_record_test.cpp: a record planted by another user, in a file or in an open store, leads no rank to that user.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "rendezvous/file_board.hpp"
#include "rendezvous/rendezvous.hpp"
#include "rendezvous/store_access.hpp"
#include "tests/support/ranks_as_threads.hpp"

namespace tutti::rendezvous {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Somebody who wants ranks to come to a store of their own: with its secret in the record, as rank 0 would write it
// where the launcher keeps secrets.
class PlantedRecord : public testing::Test {
 protected:
  PlantedRecord() {
    record_.where = {.host = "127.0.0.1", .port = trap_.address.port()};
    record_.secret = planted_;
    trap_.store->set(nonce_key, record_.nonce, soon());
  }

  void plant(mode_t mode = 0600) const {
    std::ofstream(path()) << record_.text() << '\n';
    ASSERT_EQ(chmod(path().c_str(), mode), 0);
  }
  [[nodiscard]] std::filesystem::path path() const { return folder_.path() / "meeting"; }

  [[nodiscard]] Caller by_file(int rank) const {
    return {.environment = Environment({{"HOME", folder_.path().string()}}),
            .options = {.init_method = "file://" + path().string(), .rank = rank, .size = 2, .timeout = 600ms}};
  }
  // The trap is sprung where a rank signs in.
  void expect_nobody_came() { EXPECT_FALSE(trap_.store->try_get("rendezvous/size", soon())); }

  TemporaryFolder folder_;
  const wire::Secret planted_ = wire::make_secret();
  ServedStore trap_ = serve_store(wire::Address::loopback(), {planted_}, soon());
  RendezvousRecord record_ = RendezvousRecord::by("nobody");
};

// What torchrun's agent answers to a rank that waits for a record: any process that reaches its port may have set it.
class OpenStore {
 public:
  explicit OpenStore(std::string value) : value_(std::move(value)) {}
  [[nodiscard]] std::uint16_t port() const { return listener_.address().port(); }

 private:
  void serve() {
    wire::wait_for(listener_.fd(), POLLIN, soon());
    const auto client = listener_.accept();
    if (!client) return;
    skip(*client, 1 + 4);  // validate
    for (;;) {
      const std::string query = hear(*client, 1);
      if (query.empty()) return;
      if (query[0] == 6) skip(*client, 8);  // wait: how many keys
      skip(*client, number(hear(*client, 8)));
      say(*client, query[0] == 6 ? std::string(1, '\0') : as_text(value_.size()) + value_);
    }
  }
  static std::string as_text(std::uint64_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }
  static std::uint64_t number(const std::string& text) {
    std::uint64_t value = 0;
    std::memcpy(&value, text.data(), std::min(text.size(), sizeof value));
    return value;
  }
  static std::string hear(const wire::Accepted& client, std::size_t bytes) {
    std::string text(bytes, '\0');
    for (std::size_t got = 0; got < bytes;) {
      wire::wait_for(client.socket.get(), POLLIN, soon());
      const auto moved = wire::read_some(client.socket.get(), std::as_writable_bytes(std::span(text)).subspan(got));
      if (moved.closed()) return "";
      got += moved.bytes;
    }
    return text;
  }
  static void skip(const wire::Accepted& client, std::size_t bytes) { (void)hear(client, bytes); }
  static void say(const wire::Accepted& client, const std::string& text) {
    wire::write_some(client.socket.get(), std::as_bytes(std::span(text)));
  }

  std::string value_;
  wire::Listener listener_{wire::Address::loopback()};
  std::jthread thread_{[this] { serve(); }};
};

TEST_F(PlantedRecord, InAFileDoesNotOverruleTheSecretThatWasGiven) {
  plant();
  Caller caller = by_file(1);
  caller.environment.set("TUTTI_SECRET", std::string(64, 'a'));
  EXPECT_THAT(connect_as(caller).error, AllOf(StartsWith("RendezvousError: rank 1 of 2: "), HasSubstr("secret")));
  expect_nobody_came();
}

TEST_F(PlantedRecord, InAFileDoesNotOverruleTheKeyFile) {
  plant();
  EXPECT_THAT(connect_as(by_file(1)).error, StartsWith("RendezvousError: rank 1 of 2: "));
  expect_nobody_came();
}

TEST_F(PlantedRecord, InAnOpenStoreDoesNotOverruleTheSecretThatWasGiven) {
  const OpenStore agent(record_.text());
  const Caller caller{.environment = Environment({{"TORCHELASTIC_RUN_ID", "x"},
                                                  {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                  {"RANK", "1"},
                                                  {"WORLD_SIZE", "2"},
                                                  {"LOCAL_WORLD_SIZE", "1"},
                                                  {"GROUP_WORLD_SIZE", "2"},
                                                  {"MASTER_ADDR", "127.0.0.1"},
                                                  {"MASTER_PORT", fmt::to_string(agent.port())},
                                                  {"TUTTI_SECRET", std::string(64, 'a')},
                                                  {"HOME", folder_.path().string()}}),
                      .options = {.timeout = 600ms}};
  EXPECT_THAT(connect_as(caller).error, StartsWith("RendezvousError: rank 1 of 2: "));
  expect_nobody_came();
}

TEST_F(PlantedRecord, ThatOthersCouldHaveWrittenIsRefusedAtOnceByEveryRank) {
  plant(0666);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(connect_as(by_file(rank)).error,
                AllOf(StartsWith(fmt::format("AuthenticationError: rank {} of 2", rank)),
                      HasSubstr("mode 0666: others can write it")));
  }
}

TEST_F(PlantedRecord, OfAnotherUserIsRefusedAtOnceByEveryRank) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  plant();
  ASSERT_EQ(chown(path().c_str(), 12345, static_cast<gid_t>(-1)), 0);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(connect_as(by_file(rank)).error,
                AllOf(StartsWith(fmt::format("AuthenticationError: rank {} of 2", rank)),
                      HasSubstr(path().string() + " belongs to user 12345")));
  }
}

TEST_F(PlantedRecord, BehindALinkIsRefusedAtOnceByEveryRank) {
  plant();
  std::filesystem::rename(path(), folder_.path() / "elsewhere");
  std::filesystem::create_symlink("elsewhere", path());
  for (const int rank : {0, 1}) {
    EXPECT_THAT(connect_as(by_file(rank)).error,
                AllOf(StartsWith("AuthenticationError: "), HasSubstr("symbolic link")));
  }
}

TEST_F(PlantedRecord, DoesNotWriteToTheTerminal) {
  std::ofstream(path()) << fmt::format(
                               "tutti-note-1,127.0.0.1:{},{},-,pid\x1b]0;owned\x07\xc2\x9b"
                               "2J",
                               free_port(), make_nonce())
                        << '\n';
  chmod(path().c_str(), 0600);
  const std::string error = connect_as(by_file(1)).error;
  EXPECT_THAT(error, AllOf(HasSubstr("owned"), Not(HasSubstr("\x1b")), Not(HasSubstr("\x07")), Not(HasSubstr("\x9b"))));
}

// A board of which a test says whether it keeps secrets.
class SomeBoard : public Board {
 public:
  explicit SomeBoard(bool keeps_secrets) : keeps_secrets_(keeps_secrets) {}
  void post(const RendezvousRecord&, TimePoint) override {}
  RendezvousRecord fetch(TimePoint) override { return {}; }
  [[nodiscard]] bool keeps_secrets() const override { return keeps_secrets_; }
  [[nodiscard]] std::string describe() const override { return "some board"; }

 private:
  bool keeps_secrets_;
};

TEST_F(PlantedRecord, CountsOnlyWhereTheBoardKeepsSecretsAndNoneWasGiven) {
  const SomeBoard closed(true), open(false);
  const FoundSecret given{.secret = wire::make_secret(), .source = "TUTTI_SECRET"};
  EXPECT_EQ(secret_of(record_, closed, std::nullopt).secret, planted_);
  EXPECT_EQ(secret_of(record_, open, given).secret, given.secret);
  EXPECT_THROW((void)secret_of(record_, open, std::nullopt), AuthenticationError);
  EXPECT_THROW((void)secret_of(record_, closed, given), AuthenticationError) << "rank 0 does not know it";
  record_.secret.reset();
  EXPECT_EQ(secret_of(record_, closed, given).secret, given.secret);
}

}  // namespace
}  // namespace tutti::rendezvous
