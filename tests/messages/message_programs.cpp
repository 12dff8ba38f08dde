// message_programs.cpp: runs random programs of messages in worlds of every kind, and tells what went wrong.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

#include "rank_program.hpp"
#include "support/world.hpp"

namespace {

using namespace tutti;
using namespace tutti::message_programs;

constexpr const char* usage =
    "message_programs [--seeds N] [--first S] [--replay SEED]\n"
    "  Runs N programs (100) with the seeds from S on (1), over TCP, in shared memory and in the simulator in turn.\n";

contract::WorldKind kind_of(std::uint64_t seed) {
  constexpr std::array kinds{contract::WorldKind::tcp, contract::WorldKind::shm, contract::WorldKind::simulated};
  return kinds[seed % kinds.size()];
}

/// What was wrong, one line each.
std::vector<std::string> play(const Program& program) {
  std::mutex mutex;
  std::vector<std::string> complaints;
  const auto world = contract::make_world(
      kind_of(program.seed), {.size = program.size, .seed = program.seed, .timeout = std::chrono::seconds(60)});
  world->run([&](Group& group) {
    RankProgram rank(program, group);
    std::string error;
    try {
      rank.run();
    } catch (const Error& thrown) {
      error = fmt::format("rank {}: {}", group.rank(), thrown.what());
    }
    const std::lock_guard guard(mutex);
    complaints.insert(complaints.end(), rank.complaints().begin(), rank.complaints().end());
    if (!error.empty()) complaints.push_back(error);
  });
  return complaints;
}

bool run_seed(std::uint64_t seed, bool tells_all) {
  const Program program = draw_program(seed);
  if (tells_all) {
    fmt::print("seed {}: {} ranks, {}\n", seed, program.size, contract::name_of(kind_of(seed)));
    for (const auto& round : program.rounds) {
      for (const Sent& each : round)
        fmt::print("  {} elements from rank {} to rank {} with tag {}\n", each.count, each.from, each.to, each.tag);
      fmt::print("  all_reduce\n");
    }
    std::fflush(stdout);
  }
  const auto complaints = play(program);
  for (const std::string& complaint : complaints) fmt::print("seed {}: {}\n", seed, complaint);
  if (!complaints.empty()) fmt::print("  replay: {} --replay {}\n", program_invocation_name, seed);
  return complaints.empty();
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);  // the worlds of the tests report through it
  std::uint64_t seeds = 100, first = 1;
  bool replays = false;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const bool is_known = name == "--seeds" || name == "--first" || name == "--replay";
    if (!is_known || i + 1 == argc) {
      fmt::print(stderr, "{}", usage);
      return 2;
    }
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--seeds") seeds = value;
    if (name == "--first") first = value;
    if (name == "--replay") {
      replays = true;
      seeds = 1;
      first = value;
    }
  }
  std::uint64_t bad = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) bad += run_seed(seed, replays) ? 0 : 1;
  fmt::print("{} programs of messages, {} ended otherwise than their model\n", seeds, bad);
  return bad == 0 ? 0 : 1;
}
