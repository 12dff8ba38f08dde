// pmi_test.cpp: the PMI client against a launcher that behaves, and against some that do not.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/pmi.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include <tutti/error.hpp>

#include "base/unique_fd.hpp"
#include "rendezvous/record.hpp"

namespace tutti::rendezvous {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TimePoint soon(Duration time = 10s) { return deadline_after(std::chrono::steady_clock::now(), time); }

// Answers the commands it gets, in order, with the lines it was given; hangs up after the last.
class Launcher {
 public:
  explicit Launcher(std::vector<std::string> answers) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    client_.reset(ends[0]);
    thread_ = std::jthread([this, fd = ends[1], answers = std::move(answers)] {
      const UniqueFd mine(fd);
      for (const std::string& answer : answers) {
        std::string command;
        for (char c = 0; c != '\n' && read(mine.get(), &c, 1) == 1;) command += c;
        heard_ += command;
        if (write(mine.get(), answer.data(), answer.size()) < 0) return;
      }
    });
  }
  [[nodiscard]] int fd() const { return client_.get(); }
  std::string heard() {
    thread_.join();
    return heard_;
  }

 private:
  UniqueFd client_;
  std::string heard_;
  std::jthread thread_;
};

TEST(Pmi, SpeaksTheProtocol) {
  Launcher launcher({"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n", "cmd=my_kvsname kvsname=kvs_1_0\n",
                     "cmd=put_result rc=0 msg=success\n", "cmd=barrier_out\n",
                     "cmd=get_result rc=0 msg=success value=a=b,c\n", "cmd=finalize_ack\n"});
  PmiClient client(launcher.fd());
  client.init(soon());
  client.put("key", "value", soon());
  client.barrier(soon());
  EXPECT_EQ(client.get("key", soon()), "a=b,c");
  client.finalize(soon());
  EXPECT_EQ(launcher.heard(),
            "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_my_kvsname\ncmd=put kvsname=kvs_1_0 key=key value=value\n"
            "cmd=barrier_in\ncmd=get kvsname=kvs_1_0 key=key\ncmd=finalize\n");
}

TEST(Pmi, ALauncherThatMisbehavesIsAnErrorThatQuotesTheCommand) {
  for (const auto& [answer, why] :
       std::vector<std::pair<std::string, std::string>>{{"cmd=response_to_init rc=-1\n", "refused"},
                                                        {"cmd=something_else rc=0\n", "something_else"},
                                                        {"no line at all", "hung up"},
                                                        {std::string(100000, 'x'), "no end"},
                                                        {"\n", "it said \"\""}}) {
    Launcher launcher({answer});
    PmiClient client(launcher.fd());
    try {
      client.init(soon());
      ADD_FAILURE() << answer.substr(0, 40);
    } catch (const RendezvousError& error) {
      EXPECT_THAT(error.what(), HasSubstr("cmd=init"));
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }
}

TEST(Pmi, ALauncherThatSaysNothingIsNotWaitedForForEver) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd mine(ends[0]), theirs(ends[1]);
  PmiClient client(mine.get());
  EXPECT_THROW(client.barrier(soon(50ms)), RendezvousError);
}

TEST(RendezvousRecord, SurvivesItsOwnText) {
  RendezvousRecord record{.where = {.host = "::1", .port = 65535},
                          .nonce = make_nonce(),
                          .secret = wire::make_secret(),
                          .writer = "pid 1 on host a=b;c"};
  const std::string text = record.text();
  EXPECT_EQ(text.find_first_of(" =;\n"), std::string::npos);
  const auto read = RendezvousRecord::parse(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->where.text(), record.where.text());
  EXPECT_EQ(read->nonce, record.nonce);
  EXPECT_EQ(*read->secret, *record.secret);
  EXPECT_EQ(read->writer, "pid 1 on host a b c");
  record.secret.reset();
  EXPECT_FALSE(RendezvousRecord::parse(record.text())->secret);
}

TEST(RendezvousRecord, WhatIsNoNoteIsNone) {
  const std::string nonce(32, '0');
  for (const std::string& text : std::vector<std::string>{
           "", "tutti-note-1", "tutti-note-2,a:1," + nonce + ",-,x", "tutti-note-1,a," + nonce + ",-,x",
           "tutti-note-1,a:1,short,-,x", "tutti-note-1,a:1," + nonce + ",secret,x",
           "tutti-note-1,a:1," + nonce + ",-,x,y", std::string(5000, ',')}) {
    EXPECT_FALSE(RendezvousRecord::parse(text)) << text.substr(0, 80);
  }
  EXPECT_TRUE(RendezvousRecord::parse("tutti-note-1,a:1," + nonce + ",-,x"));
}

}  // namespace
}  // namespace tutti::rendezvous
