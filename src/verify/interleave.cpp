// interleave.cpp: for tests: tries all orders of a few ranks' steps, and all values their loads may take.
// SPDX-License-Identifier: Apache-2.0
#include "verify/interleave.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

#include "base/hash.hpp"

namespace tutti::shm::interleave {
namespace {

using Kind = Operation::Kind;

thread_local Checker* current_checker = nullptr;

bool acquires(Order order) { return order != std::memory_order_relaxed && order != std::memory_order_release; }
bool releases(Order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

const char* name_of(Order order) {
  switch (order) {
    case std::memory_order_relaxed: return "relaxed";
    case std::memory_order_release: return "release";
    case std::memory_order_acq_rel: return "acq_rel";
    case std::memory_order_seq_cst: return "seq_cst";
    default: return "acquire";
  }
}

// Counted from `base`, below which nobody looks any more.
void add(Hash& hash, const View& view, const View& base) {
  View relative;
  for (std::size_t i = 0; i < view.at.size(); ++i) {
    relative.at[i] = static_cast<std::uint8_t>(std::max(view.at[i], base.at[i]) - base.at[i]);
  }
  for (const std::uint64_t eight : std::bit_cast<std::array<std::uint64_t, sizeof(View) / 8>>(relative))
    hash.add(eight);
}
static_assert((max_locations + max_ranks) % 8 == 0);

}  // namespace

Checker::Checker(std::uint64_t states_max) : states_max_(states_max), outer_(current_checker) {
  current_checker = this;
}
Checker::~Checker() { current_checker = outer_; }

Checker& Checker::current() {
  if (current_checker == nullptr) throw std::logic_error("a word of the model without a Checker");
  return *current_checker;
}

std::size_t Checker::add_location(Value initial) {
  if (initial_.size() == max_locations) throw std::logic_error("too many words for one Checker");
  initial_.push_back(initial);
  names_.push_back(fmt::format("word {}", names_.size()));
  return initial_.size() - 1;
}

void Checker::name(std::size_t location, std::string name) { names_[location] = std::move(name); }

void Checker::require(bool condition, const std::string& what) const {
  if (!condition) throw Failed{what};
}

Value Checker::latest(std::size_t location) const { return final_->locations[location].history.back().value; }

Verdict Checker::run(std::vector<Program> ranks, std::function<void()> at_end) {
  if (ranks.empty() || ranks.size() > max_ranks) throw std::logic_error("1 to 4 ranks");
  programs_ = std::move(ranks);
  at_end_ = std::move(at_end);
  visited_.clear();
  reached_.clear();
  trace_.clear();
  State state;
  for (const Value value : initial_) state.locations.push_back({.history = {{.value = value, .view = {}}}});
  state.ranks.resize(programs_.size());
  try {
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) advance(state, rank);
    explore(state);
  } catch (const Failed& failed) {
    running_ = nullptr;
    final_ = nullptr;
    return {.failure = failed.what + " after these steps:\n" + story(), .states = visited_.size()};
  }
  return {.failure = "", .states = visited_.size()};
}

// Runs the rank's program up to its next operation.
void Checker::advance(State& state, std::size_t rank) {
  running_ = &state.ranks[rank];
  running_->next = {};
  running_->polled = 0;
  position_ = 0;
  try {
    programs_[rank]();
    running_->ended = true;
  } catch (const Suspended&) {}
  running_ = nullptr;
}

Value Checker::perform(const Operation& operation) {
  if (running_ == nullptr) return perform_outside(operation);
  const bool looks = operation.kind == Kind::load || operation.kind == Kind::compare;
  if (looks) running_->polled |= 1U << operation.location;
  if (position_ < running_->results.size()) return running_->results[position_++];
  running_->next = operation;
  throw Suspended{};
}

// Before and after the programs: a protocol sets its words up, a test looks at what is left.
Value Checker::perform_outside(const Operation& operation) {
  if (final_ != nullptr) return latest(operation.location);
  Value& value = initial_[operation.location];
  if (operation.kind == Kind::store || operation.kind == Kind::write) value = operation.value;
  return value;
}

std::size_t Checker::begin_look() {
  running_->polled = 0;
  return position_;
}

void Checker::go_back(Kind kind, std::size_t mark) {
  running_->next = {.kind = kind, .value = mark};
  throw Suspended{};
}

bool Checker::can_move(const State& state, std::size_t rank) {
  const Rank& mover = state.ranks[rank];
  if (mover.ended || mover.sleeping) return false;
  if (mover.next.kind != Kind::pause) return true;
  for (std::size_t i = 0; i < state.locations.size(); ++i) {
    const bool polled = (mover.polled >> i & 1U) != 0;
    if (polled && state.locations[i].history.size() - 1 > mover.seen.at[i]) return true;
  }
  return false;
}

// Steps that commute with everything others do are taken at once: trying them later finds nothing new. (Whether plain
// accesses race does not depend on their order.)
bool Checker::is_local(const Operation& operation) {
  return operation.kind == Kind::read || operation.kind == Kind::write || operation.kind == Kind::pause ||
         operation.kind == Kind::again;
}

void Checker::explore(const State& state) {
  if (!visited_.insert(fingerprint(state)).second) return;
  if (visited_.size() > states_max_) throw Failed{fmt::format("more than {} states: not all were tried,", states_max_)};
  bool moved = false;
  for (std::size_t rank = 0; rank < state.ranks.size(); ++rank) {
    if (is_local(state.ranks[rank].next) && can_move(state, rank)) return try_rank(state, rank);
  }
  for (std::size_t rank = 0; rank < state.ranks.size(); ++rank) {
    if (!can_move(state, rank)) continue;
    moved = true;
    try_rank(state, rank);
  }
  if (!moved) at_rest(state);
}

void Checker::at_rest(const State& state) {
  std::string waiting;
  for (std::size_t rank = 0; rank < state.ranks.size(); ++rank) {
    const Rank& one = state.ranks[rank];
    if (one.ended) continue;
    waiting += fmt::format("{}rank {} {}", waiting.empty() ? "" : ", ", rank,
                           one.sleeping ? fmt::format("sleeps on {}", names_[one.next.location]) : "polls");
  }
  if (!waiting.empty()) throw Failed{waiting + " for ever"};
  final_ = &state;
  if (at_end_) at_end_();
  final_ = nullptr;
}

void Checker::try_rank(const State& state, std::size_t rank) {
  const Rank& mover = state.ranks[rank];
  const Operation& next = mover.next;
  if (next.kind != Kind::load && next.kind != Kind::compare) return take(state, rank, 0);
  const auto& history = state.locations[next.location].history;
  for (std::size_t choice = history.size(); choice-- > mover.seen.at[next.location];) {
    // An exchange that succeeds follows the write it read at once: there is no other in between.
    const bool stale_success =
        next.kind == Kind::compare && history[choice].value == next.expected && choice + 1 < history.size();
    if (!stale_success) take(state, rank, choice);
  }
}

void Checker::take(const State& state, std::size_t rank, std::size_t choice) {
  State after = state;
  const Operation operation = after.ranks[rank].next;
  trace_.push_back({.rank = rank, .operation = operation});
  const Value result = apply(after, rank, choice);
  trace_.back().result = result;
  Rank& mover = after.ranks[rank];
  if (operation.kind == Kind::pause || operation.kind == Kind::again) {
    mover.results.resize(operation.value);
  } else if (!mover.sleeping) {
    mover.results.push_back(result);
  }
  // Where its program goes from here follows from its results: most steps lead where others have led before, and the
  // program need not be run to know that.
  if (!mover.sleeping) {
    mover.next = {};
    mover.polled = 0;
  }
  if (reached_.insert(fingerprint(after)).second) {
    if (!mover.sleeping) advance(after, rank);
    explore(after);
  }
  trace_.pop_back();
}

void Checker::observe(Rank& rank, const Location& location, std::size_t choice) {
  auto& seen = rank.seen.at[rank.next.location];
  seen = std::max(seen, static_cast<std::uint8_t>(choice));
  const View& view = location.history[choice].view;
  (acquires(rank.next.order) ? rank.seen : rank.relaxed).join(view);
}

// `continued`: the view of the write that a read-modify-write read: its release also reaches readers of this write.
Value Checker::write(State& state, std::size_t rank, Value value, const View* continued) {
  Rank& mover = state.ranks[rank];
  Location& location = state.locations[mover.next.location];
  if (location.history.size() >= std::numeric_limits<std::uint8_t>::max()) {
    throw Failed{"a word is written without end"};
  }
  mover.seen.at[mover.next.location] = static_cast<std::uint8_t>(location.history.size());
  View view = releases(mover.next.order) ? mover.seen : mover.released;
  view.at[mover.next.location] = static_cast<std::uint8_t>(location.history.size());
  if (continued != nullptr) view.join(*continued);
  location.history.push_back({.value = value, .view = view});
  return value;
}

Value Checker::apply_plain(State& state, std::size_t rank) {
  Rank& mover = state.ranks[rank];
  const std::size_t place = mover.next.location;
  Location& location = state.locations[place];
  if (mover.seen.at[place] != location.plain_writes) {
    throw Failed{fmt::format("a race: rank {} accesses {}, which another writes,", rank, names_[place])};
  }
  if (mover.next.kind == Kind::read) {
    location.plain_reads[rank] = ++mover.seen.at[max_locations + rank];
    return location.history.back().value;
  }
  for (std::size_t reader = 0; reader < state.ranks.size(); ++reader) {
    if (reader != rank && mover.seen.at[max_locations + reader] < location.plain_reads[reader]) {
      throw Failed{fmt::format("a race: rank {} writes {}, which rank {} reads,", rank, names_[place], reader)};
    }
  }
  mover.seen.at[place] = ++location.plain_writes;
  location.history.back().value = mover.next.value;
  return mover.next.value;
}

Value Checker::apply(State& state, std::size_t rank, std::size_t choice) {
  Rank& mover = state.ranks[rank];
  const Operation& next = mover.next;
  auto& location = state.locations[next.location];
  const std::size_t newest = location.history.size() - 1;
  switch (next.kind) {
    case Kind::load: observe(mover, location, choice); return location.history[choice].value;
    case Kind::store: return write(state, rank, next.value, nullptr);
    case Kind::add:
    case Kind::exchange:
    case Kind::compare: {
      if (next.kind != Kind::compare) choice = newest;
      const Message read = location.history[choice];
      observe(mover, location, choice);
      if (next.kind == Kind::compare && read.value != next.expected) return read.value;
      write(state, rank, next.kind == Kind::add ? read.value + next.value : next.value, &read.view);
      return read.value;
    }
    case Kind::fence:
      mover.seen.join(mover.relaxed);
      mover.seen.join(state.fenced);
      state.fenced = mover.released = mover.seen;
      return 0;
    case Kind::read:
    case Kind::write: return apply_plain(state, rank);
    case Kind::sleep:  // the kernel looks for this rank: what it saw, the rank does not see older again
      mover.seen.at[next.location] = static_cast<std::uint8_t>(newest);
      mover.sleeping = location.history[newest].value == next.value;
      return mover.sleeping ? 1 : 0;
    case Kind::wake:
      for (std::size_t other = 0; other < state.ranks.size(); ++other) {
        Rank& sleeper = state.ranks[other];
        if (!sleeper.sleeping || sleeper.next.location != next.location) continue;
        sleeper.sleeping = false;
        sleeper.results.push_back(1);
        advance(state, other);
      }
      return 0;
    case Kind::pause:
    case Kind::again:
    case Kind::none: return 0;
  }
  return 0;
}

// What all ranks that still run have seen: older writes are history that makes no difference.
View Checker::seen_by_all(const State& state) {
  View base;
  base.at.fill(std::numeric_limits<std::uint8_t>::max());
  bool anyone = false;
  for (const Rank& rank : state.ranks) {
    if (rank.ended) continue;
    anyone = true;
    for (std::size_t i = 0; i < max_locations; ++i) base.at[i] = std::min(base.at[i], rank.seen.at[i]);
  }
  for (std::size_t i = 0; i < base.at.size(); ++i) {
    if (!anyone || i >= max_locations) base.at[i] = 0;
  }
  return base;
}

std::uint64_t Checker::fingerprint(const State& state) {
  const View base = seen_by_all(state);
  Hash print;
  for (std::size_t i = 0; i < state.locations.size(); ++i) {
    const Location& location = state.locations[i];
    print.add(location.plain_writes > 0 ? location.plain_writes - base.at[i] : 0);
    const std::size_t oldest = location.plain_writes > 0 ? 0 : base.at[i];
    print.add(location.history.size() - oldest);
    for (std::size_t j = oldest; j < location.history.size(); ++j) {
      print.add(location.history[j].value);
      add(print, location.history[j].view, base);
    }
    for (const std::uint8_t reads : location.plain_reads) print.add(reads);
  }
  for (const Rank& rank : state.ranks) {
    if (rank.ended) {
      print.add(1);
      continue;
    }
    print.add(rank.results.size() << 8 | static_cast<std::uint64_t>(rank.next.kind) << 2 | (rank.sleeping ? 2U : 0U));
    for (const Value result : rank.results) print.add(result);
    print.add(rank.polled);
    for (const View* view : {&rank.seen, &rank.relaxed, &rank.released}) add(print, *view, base);
  }
  add(print, state.fenced, base);
  return print.value();
}

std::string Checker::describe(const Step& step) const {
  const Operation& operation = step.operation;
  const std::string& place = names_.empty() ? "" : names_[operation.location];
  const char* const order = name_of(operation.order);
  switch (operation.kind) {
    case Kind::load: return fmt::format("{}.load({}) gives {}", place, order, step.result);
    case Kind::store: return fmt::format("{}.store({}, {})", place, operation.value, order);
    case Kind::add: return fmt::format("{}.fetch_add({}, {}) finds {}", place, operation.value, order, step.result);
    case Kind::exchange: return fmt::format("{}.exchange({}, {}) finds {}", place, operation.value, order, step.result);
    case Kind::compare:
      return fmt::format("{}.compare_exchange({} to {}, {}) finds {}", place, operation.expected, operation.value,
                         order, step.result);
    case Kind::fence: return "fence";
    case Kind::read: return fmt::format("reads {} = {}", place, step.result);
    case Kind::write: return fmt::format("writes {} = {}", place, operation.value);
    case Kind::sleep:
      return fmt::format("{} on {} = {}", step.result != 0 ? "sleeps" : "does not sleep", place, operation.value);
    case Kind::wake: return fmt::format("wakes who sleeps on {}", place);
    case Kind::pause: return "polls again";
    case Kind::again: return "begins again";
    case Kind::none: break;
  }
  return "nothing";
}

std::string Checker::story() const {
  constexpr std::size_t most = 100;
  const std::size_t left_out = trace_.size() - std::min(trace_.size(), most);
  std::string text = left_out > 0 ? fmt::format("  … {} steps\n", left_out) : "";
  for (std::size_t i = left_out; i < trace_.size(); ++i) {
    text += fmt::format("  rank {}: {}\n", trace_[i].rank, describe(trace_[i]));
  }
  return text;
}

}  // namespace tutti::shm::interleave
