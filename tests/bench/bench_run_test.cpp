// bench_run_test.cpp: `tutti bench` as people run it: every verb on two ranks, checked, beside the peers that are installed.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::HasSubstr;

// A folder for temporary files that is seen to be empty afterwards.
class BenchRun : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tutti-bench-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    fs::create_directory(folder_ / "tmp");
  }
  void TearDown() override {
    EXPECT_TRUE(fs::is_empty(folder_ / "tmp"));
    fs::remove_all(folder_);
  }

  struct Result {
    int status = -1;
    std::string output{};
  };
  Result bench(const std::string& words) { return tutti("bench " + words); }
  Result tutti(const std::string& words) {
    const std::string command =
        "TMPDIR='" + (folder_ / "tmp").string() + "' timeout 120 '" TUTTI_PROGRAM "' " + words + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    Result result;
    std::array<char, 4096> piece{};
    while (const std::size_t got = fread(piece.data(), 1, piece.size(), pipe)) result.output.append(piece.data(), got);
    const int status = pclose(pipe);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return result;
  }
  [[nodiscard]] std::string json_path() const { return (folder_ / "rows.json").string(); }
  [[nodiscard]] std::vector<Json> rows() const {
    std::ifstream file(json_path());
    std::vector<Json> rows;
    for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
    return rows;
  }

  fs::path folder_;
};

TEST_F(BenchRun, EveryVerbIsMeasuredAndRight) {
  const Result result = bench("all -n 2 --sizes 8,5000 --in-place --out-of-place --repeats 1 --json " + json_path());
  ASSERT_EQ(result.status, 0) << result.output;
  std::set<std::string> verbs;
  for (const Json& row : rows()) {
    verbs.insert(row.at("verb").get<std::string>());
    EXPECT_EQ(row.at("wrong"), 0) << row;
    EXPECT_GT(row.at("us_median"), 0.0) << row;
    EXPECT_GE(row.at("us_p99"), row.at("us_median")) << row;
    EXPECT_EQ(row.at("ranks"), 2);
    EXPECT_EQ(row.at("library"), "tutti");
    EXPECT_EQ(row.at("dtype"), "float32");
    EXPECT_TRUE(row.at("algbw_GBps").is_number());
  }
  EXPECT_EQ(verbs.size(), 15u);
  EXPECT_EQ(rows().size(), 4u * 4 + 10u * 2 + 1) << result.output;
}

TEST_F(BenchRun, TuneWritesATableThatJobsGoBy) {
  const std::string path = (folder_ / "table.json").string();
  const Result tuned = tutti("tune -n 2 --repeats 1 -o " + path);
  ASSERT_EQ(tuned.status, 0) << tuned.output;
  EXPECT_THAT(tuned.output, HasSubstr("chunk_bytes"));
  EXPECT_THAT(tuned.output, HasSubstr("Use it: TUTTI_TABLE=" + path));
  std::ifstream file(path);
  const Json table = Json::parse(file);
  EXPECT_GE(table.at("shared").at("chunk_bytes"), 4096);

  ASSERT_EQ(setenv("TUTTI_TABLE", path.c_str(), 1), 0);
  const Result measured = bench("all_reduce --backend shm,native --sizes 8,1M --repeats 1");
  EXPECT_EQ(measured.status, 0) << measured.output;
  EXPECT_THAT(tutti("doctor").output, HasSubstr(path));
  std::ofstream(path) << R"({"shared": {"chunk_bytes": 1}})";
  const Result refused = bench("all_reduce --sizes 8 --repeats 1");
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.output, HasSubstr("chunk_bytes is 1; it must be a whole number, at least 4096"));
  unsetenv("TUTTI_TABLE");
}

TEST_F(BenchRun, TuneRefusesWhatItCannotDoBeforeItMeasures) {
  EXPECT_EQ(tutti("tune -n 1").status, 2);
  EXPECT_THAT(tutti("tune --backend ucx").output, HasSubstr("there are choices to make in shm and native"));
  EXPECT_THAT(tutti("tune -o /no/such/folder/table.json").output, HasSubstr("cannot be written"));
}

TEST_F(BenchRun, MoreRanksOtherDtypesAndAPicture) {
  const std::string picture = (folder_ / "curves.svg").string();
  const Result result =
      bench("all_reduce all_gather -n 3 --sizes 8,64K --dtype bfloat16 --repeats 1 --plot " + picture);
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("# all_gather, bfloat16, 3 ranks, heap memory"));
  EXPECT_GT(fs::file_size(picture), 1000u);
  EXPECT_GT(fs::file_size(folder_ / "curves-2.svg"), 1000u);
}

TEST_F(BenchRun, MemoryThatLocalPeersReadIsMeasuredToo) {
  const Result result = bench("all_reduce all_to_all --sizes 8,64K --memory empty --repeats 1 --json " + json_path());
  ASSERT_EQ(result.status, 0) << result.output;
  ASSERT_EQ(rows().size(), 4u) << result.output;
  for (const Json& row : rows()) {
    EXPECT_EQ(row.at("memory"), "empty");
    EXPECT_EQ(row.at("wrong"), 0) << row;
  }
}

TEST_F(BenchRun, MistakesAreNamedWithStatusTwo) {
  EXPECT_THAT(bench("all_redice").output, HasSubstr("there is no verb all_redice to measure; there are all_reduce"));
  EXPECT_THAT(bench("all_reduce --sizes 1Q").output, HasSubstr("--sizes 1Q: not a size"));
  EXPECT_THAT(bench("ping_pong -n 3").output, HasSubstr("give -n 2, not -n 3"));
  EXPECT_THAT(bench("all_reduce --sizes 8 --against nobody").output, HasSubstr("--against nobody: not a peer"));
  EXPECT_THAT(bench("all_reduce -n 5000 --bind core").output, HasSubstr("--bind core: 5000 ranks, but only "));
  EXPECT_EQ(bench("all_reduce -n 0").status, 2);
}

class Peer : public BenchRun, public testing::WithParamInterface<const char*> {};

TEST_P(Peer, IsMeasuredBesideUsOnTheSameWork) {
  const std::string peer = GetParam();
  const std::string piece = peer == "gloo" ? "TORCH" : peer == "openmpi" ? "OPENMPI" : "MPICH";
  if (const char* reason = getenv(("TUTTI_SKIP_" + piece).c_str())) GTEST_SKIP() << reason;
  const std::string bind = std::thread::hardware_concurrency() > 1 ? " --bind core" : "";
  const Result result = bench("all_reduce broadcast all_to_all --sizes 1K --repeats 1 --against " + peer + bind +
                              " --json " + json_path());
  ASSERT_EQ(result.status, 0) << result.output;
  if (result.output.find(peer + " is not measured") != std::string::npos) GTEST_SKIP() << result.output;
  int rows_of_peer = 0;
  for (const Json& row : rows()) {
    EXPECT_EQ(row.at("wrong"), 0) << row;
    rows_of_peer += row.at("library") == peer;
  }
  EXPECT_EQ(rows_of_peer, 3) << result.output;
  EXPECT_THAT(result.output, HasSubstr("as fast as the best peer in geometric mean of 1 sizes"));
}

INSTANTIATE_TEST_SUITE_P(Installed, Peer, testing::Values("openmpi", "mpich", "gloo"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
