// report_test.cpp: the page and the JSON of made-up facts, and what the probes say about made-up jobs.
// SPDX-License-Identifier: Apache-2.0
#include "cli/report.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "cli/probes.hpp"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

Facts made_up() {
  Facts facts;
  facts.build = {.version = "1.2.3",
                 .type = "Release",
                 .compiler = "GNU 12.2.0",
                 .flags = "-O3",
                 .vector_target = "AVX2",
                 .vector_targets = {"AVX3", "AVX2", "SCALAR"}};
  facts.machine = {.host = "ada",
                   .system = "Linux 6.1 x86_64",
                   .processor = "Some CPU",
                   .packages = 1,
                   .numa_nodes = 1,
                   .cores = 2,
                   .threads = 4,
                   .usable_threads = 2,
                   .cpu_quota = 1.5,
                   .caches = {{.level = 1, .kind = "data", .bytes = 48 << 10, .count = 2},
                              {.level = 3, .kind = "unified", .bytes = 32 << 20, .count = 1}}};
  facts.memory = {.total = std::int64_t{8} << 30,
                  .available = std::int64_t{6} << 30,
                  .cgroup_limit = std::int64_t{4} << 30,
                  .cgroup_used = std::int64_t{1} << 30,
                  .locked_limit = 8 << 20,
                  .open_files_limit = 1024};
  facts.shared_memory = {.shm_total = 64 << 20, .shm_available = 32 << 20};
  facts.cross_memory = {.problem = "process_vm_readv: Operation not permitted", .ptrace_scope = 1};
  facts.clock = {.source = "tsc", .others = "tsc hpet", .resolution_ns = 1, .smallest_step_ns = 20};
  facts.network = {
      .interfaces = {{.name = "lo", .address = "127.0.0.1", .prefix_bits = 8, .up = true, .loopback = true},
                     {.name = "docker0", .address = "172.17.0.1", .prefix_bits = 16, .up = true, .internal = true},
                     {.name = "eth0", .address = "10.0.0.7", .prefix_bits = 24, .up = true}},
      .used_between_hosts = "10.0.0.7",
      .used_on_one_host = "127.0.0.1",
      .identity = "3f net:[40]"};
  facts.backends = {{.name = "native", .available = true, .detail = "plans"},
                    {.name = "mpi", .detail = "not part of this build"},
                    {.name = "ucx", .detail = "not part of this build"}};
  facts.python = {.path = "/usr/bin/python3",
                  .version = "3.11.2",
                  .frameworks = {{.name = "NumPy", .version = "2.0"}, {.name = "JAX", .reason = "not installed"}}};
  facts.launcher = {.launcher = "alone", .meeting = "none", .secret = "none needed"};
  return facts;
}

TEST(Report, IsOnePageWithAMarkOnEachLine) {
  EXPECT_EQ(to_text(made_up(), Style::plain()),
            "Tutti 1.2.3 · Release build · GNU 12.2.0 · -O3\n"
            "  ✓ vectors      AVX2, out of AVX3 AVX2 SCALAR\n"
            "\n"
            "Machine\n"
            "  · host         ada · Linux 6.1 x86_64\n"
            "  · processor    Some CPU · 1 socket, 1 NUMA node, 2 cores, 4 threads\n"
            "  · caches       L1d 48 KiB × 2 · L3 32 MiB × 1\n"
            "  ! usable       2 of 4 threads; the cgroup gives the time of 1.5\n"
            "  · memory       8 GiB, 6 GiB available\n"
            "  ! cgroup       at most 4 GiB, 1 GiB in use\n"
            "  · limits       locked 8 MiB · address space unlimited · open files 1024\n"
            "  ✓ memfd        made, mapped and sealed; a local peer can open it\n"
            "  ✓ /dev/shm     64 MiB, 32 MiB free\n"
            "  ! peer memory  process_vm_readv: Operation not permitted (ptrace_scope 1: parents only)\n"
            "  ✓ clock        tsc, resolution 1 ns, steps of 20 ns\n"
            "\n"
            "Network\n"
            "  ✓ loopback     works; it joins the ranks that show this network: 3f net:[40]\n"
            "  ✓ lo           127.0.0.1/8   used on one host\n"
            "  ✓ eth0         10.0.0.7/24   used between hosts\n"
            "  · docker0      172.17.0.1/16   joins containers of this host\n"
            "\n"
            "Backends\n"
            "  ✓ native       plans\n"
            "  · not here     mpi, ucx: not part of this build\n"
            "\n"
            "Python 3.11.2 · /usr/bin/python3\n"
            "  ✓ NumPy        2.0\n"
            "  · JAX          no: not installed\n"
            "\n"
            "Job\n"
            "  ✓ launcher     alone: rank 0 of 1\n"
            "  · meeting      none\n"
            "  · secret       none needed\n"
            "  · table        the built-in cost model (TUTTI_TABLE is not set)\n"
            "\n"
            "Nothing stands in the way of tutti::init().\n");
}

TEST(Report, ProblemsAreMarkedAndCounted) {
  Facts facts = made_up();
  facts.launcher.problem = "RANK is not a number";
  facts.table = {.path = "/t.json", .rows = 2, .limits = {"chunk_bytes 65536", "read_bytes_max 0"}};
  EXPECT_THAT(to_text(facts, Style::plain()),
              HasSubstr("· table        /t.json, 2 rows; in shared memory chunk_bytes 65536, read_bytes_max 0\n"));
  facts.table = {.path = "/t.json", .problem = "TUTTI_TABLE=/t.json: the file cannot be read"};
  const std::string text = to_text(facts, Style::plain());
  EXPECT_THAT(text, HasSubstr("✗ launcher     RANK is not a number\n"));
  EXPECT_THAT(text, HasSubstr("✗ table        TUTTI_TABLE=/t.json: the file cannot be read\n"));
  EXPECT_THAT(text, HasSubstr("tutti::init() would fail: 2 problems, marked ✗.\n"));
  EXPECT_EQ(problems(facts).size(), 2u);
  facts.network.loopback_problem = "lo is down";
  EXPECT_THAT(to_text(facts, Style::plain()), HasSubstr("✗ loopback     lo is down\n"));
  EXPECT_EQ(problems(facts).size(), 3u);
}

TEST(Report, ManyInterfacesStayOnOneScreen) {
  Facts facts = made_up();
  for (int i = 0; i < 30; ++i) {
    facts.network.interfaces.push_back({.name = "veth" + std::to_string(i), .address = "10.1.0.1", .up = true});
  }
  const std::string text = to_text(facts, Style::plain());
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 45);
  EXPECT_THAT(text, HasSubstr("used between hosts"));
  EXPECT_THAT(text, HasSubstr("27 more"));
}

TEST(Report, JsonHasTheSameFacts) {
  const auto json = nlohmann::json::parse(to_json(made_up()));
  EXPECT_EQ(json.at("build").at("vector_target"), "AVX2");
  EXPECT_EQ(json.at("machine").at("caches").at(1).at("bytes"), 32 << 20);
  EXPECT_EQ(json.at("memory").at("address_space_limit"), nullptr);
  EXPECT_EQ(json.at("cross_memory").at("ptrace_scope"), 1);
  EXPECT_EQ(json.at("network").at("used_between_hosts"), "10.0.0.7");
  EXPECT_EQ(json.at("python").at("frameworks").at(1).at("version"), nullptr);
  EXPECT_TRUE(json.at("problems").empty());
}

TEST(ProbeLauncher, SaysWhereTheRanksWouldMeetAndNeverTheSecret) {
  const std::string secret(64, 'a');
  const LauncherFacts facts = probe_launcher(Environment{{"RANK", "1"},
                                                         {"WORLD_SIZE", "4"},
                                                         {"MASTER_ADDR", "10.0.0.1"},
                                                         {"MASTER_PORT", "2345"},
                                                         {"TUTTI_SECRET", secret}});
  EXPECT_EQ(facts.launcher, "by hand");
  EXPECT_EQ(facts.rank, 1);
  EXPECT_EQ(facts.size, 4);
  EXPECT_EQ(facts.meeting, "rank 0 listens at 10.0.0.1:2345 (MASTER_ADDR, MASTER_PORT)");
  EXPECT_EQ(facts.secret, "TUTTI_SECRET");
  EXPECT_EQ(facts.problem, "");
}

TEST(ProbeLauncher, ContradictionsAreAProblem) {
  EXPECT_THAT(probe_launcher(Environment{{"RANK", "1"}}).problem, HasSubstr("WORLD_SIZE"));
  EXPECT_NE(probe_launcher(Environment{{"RANK", "4"}, {"WORLD_SIZE", "4"}}).problem, "");
}

TEST(ProbeTable, ABadFileIsAProblemThatNamesIt) {
  EXPECT_EQ(probe_table(Environment{}).problem, "");
  EXPECT_TRUE(probe_table(Environment{}).limits.empty());
  EXPECT_THAT(probe_table(Environment{{"TUTTI_TABLE", "/no/such/table"}}).problem, HasSubstr("/no/such/table"));
}

TEST(ProbeNetwork, AWishThatNothingFitsIsAProblem) {
  EXPECT_THAT(probe_network(Environment{{"TUTTI_INTERFACE", "nosuch9"}}).problem, HasSubstr("nosuch9"));
  EXPECT_EQ(probe_network(Environment{{"TUTTI_INTERFACE", "127.0.0.1"}}).used_between_hosts, "127.0.0.1");
}

TEST(ProbeBuild, TheVectorTargetIsOneOfThoseCompiled) {
  const BuildFacts facts = probe_build();
  EXPECT_THAT(facts.vector_targets, testing::Contains(facts.vector_target));
}

}  // namespace
}  // namespace tutti::cli
