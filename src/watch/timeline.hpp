// timeline.hpp: the records of all ranks of a job in one time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "record/clock_fit.hpp"
#include "record/jobs.hpp"
#include "record/snapshot.hpp"

namespace tutti::watch {

enum class Seen : std::uint8_t {
  running,  // its process lives
  left,     // it left the job in order
  gone      // its process has ended, and it had not left
};

struct RankView {
  record::Snapshot snapshot{};
  Seen seen = Seen::running;
  record::Offset offset{};  // of its host's clock against that of rank 0; already in all times
};

/// What one rank sent to another in a message, both ends found.
struct Arrow {
  int from = 0, to = 0;  // ranks in the world
  const record::CallRecord* sent = nullptr;
  const record::CallRecord* received = nullptr;
};

/// A message of a collective, both ends found.
struct StepArrow {
  int from = 0, to = 0;  // ranks in the world
  const record::StepRecord* sent = nullptr;
  const record::StepRecord* received = nullptr;
};

class Timeline {
 public:
  /// The ranks' clocks are aligned, host by host.
  explicit Timeline(std::vector<RankView> ranks);
  static Timeline of_job(const record::FoundJob& job);
  /// Of the files of a trace. Throws InvalidArgument where there are none.
  static Timeline of_folder(const std::string& folder);

  [[nodiscard]] const std::vector<RankView>& ranks() const { return ranks_; }
  [[nodiscard]] int size() const;
  [[nodiscard]] const std::string& job() const { return ranks_.front().snapshot.job; }
  [[nodiscard]] std::int64_t begin_ns() const;
  [[nodiscard]] std::int64_t end_ns() const;
  /// The rank in the world of a member of a group; nothing where that member was not seen.
  [[nodiscard]] std::optional<int> world_rank(std::uint64_t group, int member) const;
  /// Messages whose both ends are on record.
  [[nodiscard]] std::vector<Arrow> arrows() const;
  [[nodiscard]] std::vector<StepArrow> step_arrows() const;
  /// When a call that is under way ended as far as is known: when its rank was looked at.
  [[nodiscard]] static std::int64_t end_of(const RankView& rank, const record::CallRecord& call) {
    return call.is_under_way() ? rank.snapshot.read_ns : call.ended_ns;
  }

 private:
  void align();
  std::vector<RankView> ranks_;  // by rank
  std::map<std::pair<std::uint64_t, int>, int> members_;
};

/// Whether nobody leaves such a call before all have entered it.
bool synchronises(Verb verb);

}  // namespace tutti::watch
