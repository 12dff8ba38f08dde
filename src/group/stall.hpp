// stall.hpp: what ranks tell each other when a call takes long, and whom that makes responsible.
// SPDX-License-Identifier: Apache-2.0
//
// A rank that waits asks those it waits for (a probe, with its signature), and those they wait for in turn. The rank at the end of
// such a chain is what everyone waits for: a rank that has not entered the call, or that does not answer.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/request.hpp>

#include "group/call_history.hpp"

namespace tutti {

struct StallProbe {
  static constexpr std::uint64_t message_call = ~std::uint64_t{0};  // number of the call: a message, which has none
  enum class About : std::uint8_t {
    waiting = 0,       // "I am in this call of this group and wait for you"
    this_call = 1,     // "in this call you asked for something else": the one who is asked knows both, and says so
    earlier_calls = 2  // "one of the calls before was another one with you": these are the latest ones
  };
  About about = About::waiting;
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  Signature signature{};
  std::string site{};     // where the program made the call; empty: not known
  std::string details{};  // this_call: what the signature has as a hash only, in words
  CallDigest digest{};    // earlier_calls: of those before the one that showed it
  std::vector<Signature> calls{};
};

struct StallAnswer {
  enum class State : std::uint8_t {
    unknown_group = 0,
    not_there_yet = 1,  // has not made this call; next_sequence says how far it is
    waiting = 2,        // is in the call, and waits itself
    past_it = 3,        // has finished the call
    // Asked about differences: it tells the group which call it was; there are none; it is too long ago.
    differs = 4,
    agrees = 5,
    forgotten = 6,
  };
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;  // the call it was asked about
  State state = State::unknown_group;
  std::uint64_t next_sequence = 0;
  std::int32_t stage = 0, step = 0, step_count = 0;
  std::vector<int> waiting_for{};  // ranks in the group
  std::string site{};              // where its program made the call; empty: not known
  std::string elsewhere{};         // what else its program waits for, in words; empty: nothing
  std::string at{};                // where its program is instead, "data.py:88 in load"; empty: not known
};

/// " at train.py:41"; nothing where that is not known.
std::string at_site(std::string_view site);
/// "ranks 0, 3-7 and 12", the first few of many.
std::string name_ranks(std::span<const int> ranks);

std::vector<std::byte> encode(const StallProbe& probe);
std::vector<std::byte> encode(const StallAnswer& answer);
/// Both throw MalformedMessage.
StallProbe decode_probe(std::span<const std::byte> bytes);
StallAnswer decode_answer(std::span<const std::byte> bytes);

/// What the members of a group answered last, and whom a wait leads to.
class StallMap {
 public:
  /// `question`: its number; 0: of none, the rank said it by itself.
  void note(int rank, const StallAnswer& answer, TimePoint now, std::uint64_t question = 0);
  /// Where the rank's program made the call, as it said in a probe or an answer; empty: it did not.
  void note_site(int rank, std::uint64_t sequence, const std::string& site);
  [[nodiscard]] std::string site_of(int rank, std::uint64_t sequence) const;
  /// Whether the rank answered about this call after `since`.
  [[nodiscard]] bool answered(int rank, std::uint64_t sequence, TimePoint since) const;
  /// Whether the rank answered question `first` about this call, or a later one: it lived when that was asked.
  [[nodiscard]] bool answered_question(int rank, std::uint64_t sequence, std::uint64_t first) const;
  /// Whether the rank was asked about this call and has yet to answer, or answered after `since`.
  [[nodiscard]] bool was_asked(int rank, std::uint64_t sequence, TimePoint since) const;
  /// Whether the rank waits in the call as well, as far as is known: it was asked, and answered or had its time to.
  enum class Standing : std::uint8_t { unknown, asked, waits, does_not_wait };
  [[nodiscard]] Standing standing(int rank, std::uint64_t sequence, TimePoint now, Duration stale) const;
  /// The rank is asked about the call. How long it takes to answer counts where nothing else tells ranks apart.
  void note_asked(int rank, std::uint64_t sequence, TimePoint now);
  void note_question(int rank, std::uint64_t sequence, TimePoint now);
  /// All calls before this one have ended.
  void forget_before(std::uint64_t sequence);
  /// Follows the chains of waiting from what rank `self` waits for in call `sequence`. Returns the ranks at their ends, sorted; answers
  /// older than `stale` count as none. A rank that waits for one that has finished the call is an end itself: what it waits for
  /// was sent. Where ranks wait for each other in a cycle, the one of the innermost cycle that all others wait for alone stands for it, else the
  /// one that is least far, then the one that most of them wait for, then the one that takes longest to answer. If that is this rank itself, it names whom it waits for.
  struct Wait {
    int self = 0;
    std::span<const int> waiting_for;
    std::uint64_t sequence = 0;
    int stage = 0, step = 0, step_count = 0;  // how far this rank is itself
  };
  [[nodiscard]] std::vector<int> ends(const Wait& wait, TimePoint now, Duration stale) const;
  /// All ranks on the chains, ends included: whom to ask next.
  [[nodiscard]] std::vector<int> involved(std::span<const int> waiting_for, std::uint64_t sequence) const;
  /// "has not entered the call (its next is #411)", "does not answer", …
  [[nodiscard]] std::string describe(int rank, std::uint64_t sequence, TimePoint now, Duration stale) const;
  /// "rank 5 (host b), which has not entered the call (its next is #411)"; ranks of which the same is to be said stand together.
  struct When {
    TimePoint now;
    Duration stale;
  };
  [[nodiscard]] std::string describe_all(std::span<const int> ranks, std::uint64_t sequence, When when,
                                         const std::function<std::string(int)>& name_of_rank) const;

 private:
  using Waits = std::map<int, std::vector<int>>;  // who waits for whom; those who are through are left out
  [[nodiscard]] bool has_passed(int rank, std::uint64_t sequence) const;
  struct Far {                    // compared in this order; who comes first holds up the others
    bool is_one_of_many = false;  // not all others of the cycle wait for it alone
    int stage = 0;
    double part = 0;             // of its steps
    std::ptrdiff_t waiters = 0;  // negative
    Duration answered_after{};   // negative
    auto operator<=>(const Far&) const = default;
  };
  [[nodiscard]] Far far(int rank, const Wait& wait) const;
  [[nodiscard]] int holds_up(const Wait& wait, const Waits& waits) const;
  [[nodiscard]] Waits waits(const Wait& wait, TimePoint now, Duration stale) const;

  struct TimedAnswer {
    StallAnswer answer;
    TimePoint at;
    std::uint64_t question = 0;  // the latest that it answered
    Duration delay{};            // the longest that the rank took to answer about this call
  };
  std::map<std::pair<std::uint64_t, int>, std::string> sites_;
  std::map<std::pair<std::uint64_t, int>, TimePoint> questions_;   // whether they wait as well
  std::map<std::pair<std::uint64_t, int>, TimePoint> unanswered_;  // since when
  std::map<std::pair<std::uint64_t, int>, TimedAnswer> answers_;   // by call and rank: several calls may be under way
};

}  // namespace tutti
