// recorder_test.cpp: what is written down is read again, by whoever may, also after the writer was killed.
// SPDX-License-Identifier: Apache-2.0
#include "record/recorder.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <filesystem>
#include <thread>

#include <tutti/error.hpp>

#include "record/jobs.hpp"
#include "record/segment.hpp"
#include "record/snapshot.hpp"

namespace tutti::record {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr CallShape all_reduce_of_8{.bytes = 8, .verb = 0, .dtype = 0, .op = 0, .flags = CallShape::reduces};

struct Written {
  int file = -1;
  Recorder recorder;
  explicit Written(std::size_t entries = 64, const std::string& job = "test")
      : recorder(make_segment(entries), {.rank = 1, .size = 4, .job = job, .host = "here"}, Recorder::Detail::usual) {
    file = recorder.file();
    recorder.add_group(7, 1, 4, "world");
  }
  [[nodiscard]] Snapshot read() const { return read_snapshot(file, Alive::yes).value(); }
};

TEST(Recorder, WhatIsWrittenDownIsReadAgain) {
  Written written;
  Recorder& recorder = written.recorder;
  CallShape shape = all_reduce_of_8;
  shape.how = recorder.name("ring over tcp");
  recorder.end_at_once(recorder.begin(shape, 5, recorder.site("train.py:41")));
  const std::uint64_t late = recorder.begin(shape, 6, 0);
  for (const auto begun = std::chrono::steady_clock::now();
       std::chrono::steady_clock::now() - begun < std::chrono::microseconds(50);) {}
  recorder.end_waited(late, shape);
  const std::uint64_t open = recorder.begin(shape, 7, 0);
  recorder.note_stall(open, "all_reduce #7 waits for rank 2", 1, 3);
  const Snapshot snapshot = written.read();
  EXPECT_EQ(snapshot.rank, 1);
  EXPECT_EQ(snapshot.size, 4);
  EXPECT_EQ(snapshot.host, "here");
  EXPECT_EQ(snapshot.process, getpid());
  ASSERT_EQ(snapshot.calls.size(), 3u);
  const CallRecord& first = snapshot.calls[0];
  EXPECT_EQ(first.sequence, 5u);
  EXPECT_EQ(first.how, "ring over tcp");
  EXPECT_EQ(first.site, "train.py:41");
  EXPECT_EQ(first.state, State::at_once);
  EXPECT_EQ(snapshot.calls[1].state, State::ended);
  EXPECT_GE(snapshot.calls[1].ended_ns, snapshot.calls[1].started_ns);
  EXPECT_LE(first.started_ns, snapshot.calls[1].started_ns);
  ASSERT_NE(snapshot.oldest_under_way(), nullptr);
  EXPECT_EQ(snapshot.oldest_under_way()->sequence, 7u);
  EXPECT_EQ(snapshot.stall.number, open);
  EXPECT_THAT(snapshot.stall.text, HasSubstr("rank 2"));
  ASSERT_EQ(snapshot.groups[0].counts.size(), 1u);
  EXPECT_EQ(snapshot.groups[0].counts[0].calls, 3u);
  EXPECT_EQ(snapshot.groups[0].counts[0].bytes, 24u);
  EXPECT_GT(snapshot.groups[0].counts[0].waited_ns, 0);
}

TEST(Recorder, WritesStepsDownWhereAllIsTraced) {
  UniqueFd file(memfd_create("trace", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), static_cast<off_t>(traced_bytes(64))), 0);
  const int number = file.get();
  Recorder recorder(std::move(file), {.rank = 1, .size = 4, .job = "test", .host = "here"}, Recorder::Detail::traced);
  const std::uint64_t call = recorder.begin(all_reduce_of_8, 5, 0);
  ASSERT_NE(recorder.steps(), nullptr);
  for (std::uint64_t i = 0; i < 70; ++i)
    recorder.steps()->note({.group = 7, .sequence = i, .kind = StepKind::send, .bytes = 8, .peer = 3}, ticks());
  recorder.end_at_once(call);
  const Snapshot snapshot = read_snapshot(number, Alive::yes).value();
  EXPECT_EQ(snapshot.calls.size(), 1u);
  ASSERT_EQ(snapshot.steps.size(), 64u);  // the latest
  EXPECT_EQ(snapshot.steps.back().sequence, 69u);
  EXPECT_EQ(snapshot.steps.back().kind, StepKind::send);
  EXPECT_EQ(snapshot.steps.back().peer, 3);
  EXPECT_LE(snapshot.steps.back().started_ns, snapshot.steps.back().ended_ns);
  EXPECT_EQ(Written().recorder.steps(), nullptr);
}

TEST(Recorder, NamesTheWayOfACallThatHasBegun) {
  Written written;
  const std::uint64_t call = written.recorder.begin(all_reduce_of_8, 5, 0);
  written.recorder.note_way(call, written.recorder.name("ring over tcp"));
  EXPECT_EQ(written.read().calls.at(0).how, "ring over tcp");
}

TEST(Recorder, TheTimeOfARankThatWasKilledReachesToItsLastCall) {
  Written written;
  written.recorder.end_waited(written.recorder.begin(all_reduce_of_8, 5, 0), all_reduce_of_8);
  const Snapshot dead = read_snapshot(written.file, Alive::no).value();  // its clock was noted when it joined
  EXPECT_GE(dead.read_ns, dead.calls.at(0).ended_ns);
}

TEST(Recorder, KeepsTheLatestCallsAndCountsAll) {
  Written written(16);
  for (std::uint64_t i = 0; i < 100; ++i) written.recorder.end_at_once(written.recorder.begin(all_reduce_of_8, i, 0));
  const Snapshot snapshot = written.read();
  ASSERT_EQ(snapshot.calls.size(), 16u);
  EXPECT_EQ(snapshot.calls.front().sequence, 84u);
  EXPECT_EQ(snapshot.calls.back().sequence, 99u);
  EXPECT_EQ(snapshot.groups[0].counts[0].calls, 100u);
}

TEST(Recorder, ACallWhoseEntryIsAnotherOnesByNowEndsAllTheSame) {
  Written written(16);
  const std::uint64_t old = written.recorder.begin(all_reduce_of_8, 0, 0);
  const std::uint64_t started = written.recorder.started_at(old);
  for (std::uint64_t i = 1; i <= 16; ++i) written.recorder.begin(all_reduce_of_8, i, 0);
  written.recorder.end(old, started, all_reduce_of_8, State::failed);
  const Snapshot snapshot = written.read();
  EXPECT_EQ(snapshot.groups[0].counts[0].failed, 1u);
  for (const CallRecord& call : snapshot.calls) EXPECT_TRUE(call.is_under_way());
}

TEST(Recorder, RecordsOutliveARankThatIsKilled) {
  const UniqueFd kept = make_segment(64);
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    Recorder recorder(UniqueFd(dup(kept.get())), {.rank = 2, .size = 3, .job = "killed"}, Recorder::Detail::usual);
    recorder.add_group(1, 2, 3, "world");
    recorder.begin(all_reduce_of_8, 41, recorder.site("train.py:9"));
    [[maybe_unused]] const ssize_t told = write(ready[1], "x", 1);
    pause();
    _exit(1);
  }
  char told = 0;
  ASSERT_EQ(read(ready[0], &told, 1), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const Snapshot snapshot = read_snapshot(kept.get(), Alive::no).value();
  ASSERT_NE(snapshot.oldest_under_way(), nullptr);
  EXPECT_EQ(snapshot.oldest_under_way()->sequence, 41u);
  EXPECT_EQ(snapshot.oldest_under_way()->site, "train.py:9");
  close(ready[0]);
  close(ready[1]);
}

TEST(Recorder, AForkedChildWritesNothingIntoItsParents) {
  Written written;
  const pid_t child = fork();
  if (child == 0) {
    written.recorder.abandon();
    for (std::uint64_t i = 0; i < 10; ++i) written.recorder.begin(all_reduce_of_8, i, 0);
    written.recorder.note_error("of the child");
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(written.read().calls.empty());
  EXPECT_EQ(written.read().error, "");
}

TEST(Recorder, AnswersThoseWhoAsk) {
  Written written(64, "asked");
  std::thread answering([&] {
    while (written.recorder.answers().wait()) written.recorder.answers().give("train.py:88 in load");
  });
  while (written.recorder.fixed().answers.load() == 0) std::this_thread::yield();
  FoundRecord found;
  found.file.reset(dup(written.file));
  found.snapshot = written.read();
  found.is_alive = true;
  ask_for_stacks({&found}, std::chrono::seconds(20));
  EXPECT_EQ(found.snapshot.stack, "train.py:88 in load");
  written.recorder.answers().stop();
  answering.join();
}

TEST(Jobs, AreFoundByTheirNameAndByTheirProcess) {
  Written written(64, "found-by-name");
  FoundJob job = choose_job(find_jobs(Read::calls), "found-by-n");
  ASSERT_EQ(job.ranks.size(), 1u);
  EXPECT_TRUE(job.ranks[0].is_alive);
  EXPECT_EQ(job.size, 4);
  EXPECT_EQ(choose_job(find_jobs(Read::counts), std::to_string(getpid())).id, "found-by-name");
  EXPECT_THROW(choose_job(find_jobs(Read::counts), "no such job"), InvalidArgument);
}

TEST(Snapshot, IsNotMadeOfAFileThatHoldsSomethingElse) {
  const UniqueFd empty(memfd_create("other", MFD_CLOEXEC));
  EXPECT_FALSE(read_snapshot(empty.get(), Alive::no));
  const UniqueFd zeros = make_segment(16);
  EXPECT_FALSE(read_snapshot(zeros.get(), Alive::no));
}

TEST(Snapshot, BelievesNoIndexThatItHasNotChecked) {
  Written written(16);
  written.recorder.begin(all_reduce_of_8, 1, 0);
  CallShape wrong{.bytes = 8, .group = 9999, .how = 9999, .verb = 200, .dtype = 250};
  // As a writer that went wrong would leave it.
  Entry entry{};
  entry.number.store(2);
  entry.shape = wrong;
  entry.site.store(1u << 30);
  ASSERT_EQ(pwrite(written.file, &entry, sizeof entry, static_cast<off_t>(fixed_bytes() + 2 * sizeof(Entry))),
            static_cast<ssize_t>(sizeof entry));
  const std::uint64_t huge = std::uint64_t{1} << 40;
  EXPECT_EQ(written.read().calls.size(), 1u);
  ASSERT_EQ(pwrite(written.file, &huge, sizeof huge, offsetof(Fixed, entry_count)), 8);
  EXPECT_TRUE(written.read().calls.empty());
}

TEST(Snapshot, IsJsonForOtherPrograms) {
  Written written;
  written.recorder.begin(all_reduce_of_8, 12, written.recorder.site("a \"quoted\" file.py:3"));
  const auto json = nlohmann::json::parse(to_json(written.read()));
  EXPECT_EQ(json["rank"], 1);
  EXPECT_EQ(json["calls"][0]["verb"], "all_reduce");
  EXPECT_EQ(json["calls"][0]["sequence"], 12);
  EXPECT_EQ(json["calls"][0]["state"], "under way");
  EXPECT_EQ(json["calls"][0]["site"], "a \"quoted\" file.py:3");
  EXPECT_EQ(json["groups"][0]["verbs"]["all_reduce"]["calls"], 1);
}

TEST(SegmentFile, IsTheUsersOwnAndReplacesAnOlderOne) {
  std::string folder = (std::filesystem::temp_directory_path() / "tutti-record-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  for (int i = 0; i < 2; ++i) {
    const UniqueFd file = make_segment_file(folder, 3, 1024);
    struct stat status {};
    fstat(file.get(), &status);
    EXPECT_EQ(status.st_mode & 0777u, 0600u);
  }
  EXPECT_TRUE(std::filesystem::exists(folder + "/rank-3.tuttirecord"));
  EXPECT_THROW(make_segment_file(folder + "/no/such", 0, 1024), Error);
  std::filesystem::remove_all(folder);
}

TEST(InheritedSegment, IsUsedOnlyIfTheDescriptorIsStillThatFile) {
  const UniqueFd file = make_segment(16), other = make_segment(16);
  const std::string said = describe_descriptor(file.get());
  EXPECT_TRUE(inherited_segment(Environment{{descriptor_variable, said}}));
  const std::string wrong = std::to_string(other.get()) + said.substr(said.find(':'));
  EXPECT_FALSE(inherited_segment(Environment{{descriptor_variable, wrong}}));
  EXPECT_FALSE(inherited_segment(Environment{{descriptor_variable, "900:1"}}));
  EXPECT_FALSE(inherited_segment(Environment{}));
}

}  // namespace
}  // namespace tutti::record
