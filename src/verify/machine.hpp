// machine.hpp: runs the plans of all ranks of a group on symbols, without I/O.
// SPDX-License-Identifier: Apache-2.0
//
// Sends are synchronous unless told otherwise: a send ends when its receive has started and taken the data. Plans that
// come to an end this way come to an end over any transport, because buffering only lets steps end earlier; and since a
// step that may run is never forbidden again, one run to the end decides the question for all schedules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/layout.hpp"
#include "plan/plan.hpp"
#include "verify/symbol.hpp"

namespace tutti {

/// In which order steps that may run are run.
enum class Schedule : std::uint8_t { first_ready, last_ready, random };
enum class Sends : std::uint8_t { synchronous, eager };

class Machine {
 public:
  /// What went wrong, or an empty string. `names`, where given, learns what expressions mean.
  std::string run(std::span<const Plan> plans, Schedule schedule, Sends sends, std::uint64_t seed, SymbolNames* names);

  /// Element `i` of a rank's output (or input) after the run.
  [[nodiscard]] const Symbol& output(int rank, std::int64_t i) const { return memories_[std::size_t(rank)].output[i]; }
  [[nodiscard]] const Symbol& input(int rank, std::int64_t i) const { return memories_[std::size_t(rank)].input[i]; }
  [[nodiscard]] std::int64_t messages() const { return static_cast<std::int64_t>(links_.size()); }

 private:
  struct Memory {
    std::vector<Symbol> elements;  // input and output, one after the other or shared, then scratch
    Symbol *input = nullptr, *output = nullptr, *scratch = nullptr;
  };
  struct Place {
    std::uint32_t rank, step;
  };
  struct Link {  // one message
    Place send, recv;
    bool send_ready = false, recv_ready = false;
  };
  struct SubCollectiveMatch {  // one call on a subgroup
    std::vector<Place> members;
    std::size_t ready = 0;
  };

  void prepare_memory(std::span<const Plan> plans, SymbolNames* names);
  std::string match_messages(std::span<const Plan> plans);
  std::string match_calls(std::span<const Plan> plans);
  std::string check_match(std::span<const Plan> plans, const SubCollectiveMatch& match) const;
  void start(Place place);
  void run_local(Place place, const Step& step);
  void transfer(std::uint32_t link);
  void run_match(const SubCollectiveMatch& match);
  void complete(Place place);
  Place next_ready(Schedule schedule);
  Symbol* at(std::uint32_t rank, Piece piece);
  Symbol combine(const Symbol& a, const Symbol& b);
  Symbol last_touch(const Symbol& a);
  void check_defined(Place place, Piece piece);
  [[nodiscard]] std::string describe_stall() const;
  [[nodiscard]] const Step& step_at(Place place) const { return plans_[place.rank].steps[place.step]; }

  std::span<const Plan> plans_;
  Sends sends_ = Sends::synchronous;
  SymbolNames* names_ = nullptr;
  std::uint64_t random_ = 1;
  std::string problem_;
  std::vector<Memory> memories_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> pair_begin_, pair_sent_, pair_received_;  // per ordered pair of ranks: its links
  std::vector<std::vector<Symbol>> payloads_;                          // per link, when sends are eager
  std::vector<std::vector<std::uint32_t>> link_of_, needs_;            // per rank, per step
  std::vector<SubCollectiveMatch> matches_;
  std::vector<Place> ready_;
  std::size_t ready_front_ = 0, left_ = 0;
  std::vector<Symbol> operands_;
};

}  // namespace tutti
