// interleave.hpp: for tests: runs a protocol of 2 to 4 ranks in every order, on a memory weaker than this machine's.
// SPDX-License-Identifier: Apache-2.0
//
// Memory is a history of writes per location, and what a rank must have seen of it is a view: for each location, the
// oldest write it may still read. A load takes any write from there on; acquire and release pass views on; a fence
// joins the rank's view with that of all fences before it. So a store is seen late, loads and stores to different
// locations pass each other, and two ranks see two writes in different orders, as C++ permits. Not modelled: loads that
// see stores of the future, and plain stores of several ranks to one location in another order than the one tried (give
// a location one writer, or use read-modify-write).
//
//   Checker checker;                                  // first; words made while it lives belong to it
//   ModelAtomics::Word flag; ModelAtomics::Plain<int> data;
//   const Verdict verdict = checker.run({[&] { data.set(1); flag.store(1, std::memory_order_release); },
//                                        [&] { checker.poll_until([&] { return flag.load(std::memory_order_acquire) ==
//                                        1; });
//                                              checker.require(data.get() == 1, "data"); }});
//   EXPECT_EQ(verdict.failure, "");
//
// A program is run anew from its beginning for each step, with the results of its earlier steps: it keeps its state in
// local variables, and does nothing that depends on anything but what it read. It must let exceptions pass.
// Failures: a requirement, a data race on Plain, ranks that all wait, too many states. Each comes with the steps to it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

namespace tutti::shm::interleave {

using Value = std::uint64_t;
using Order = std::memory_order;

constexpr std::size_t max_locations = 36;
constexpr std::size_t max_ranks = 4;

struct Verdict {
  std::string failure{};  // empty: none, in any order
  std::uint64_t states = 0;
};

// For each location the number of the write, and for each rank the number of its plain reads, that are known.
struct View {
  std::array<std::uint8_t, max_locations + max_ranks> at{};
  void join(const View& other) {
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = std::max(at[i], other.at[i]);
  }
};

struct Operation {
  enum class Kind : std::uint8_t {
    none,
    load,
    store,
    add,
    exchange,
    compare,
    fence,
    read,
    write,
    sleep,
    wake,
    pause,
    again
  };
  Kind kind = Kind::none;
  Order order = std::memory_order_relaxed;
  std::size_t location = 0;
  Value value = 0;     // to store, to add, or that lets a rank sleep
  Value expected = 0;  // of compare
};

class Checker {
 public:
  explicit Checker(std::uint64_t states_max = 3'000'000);
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;
  /// The checker of this thread.
  static Checker& current();

  using Program = std::function<void()>;
  /// `at_end` is called wherever all ranks have ended: its loads give the last values written.
  Verdict run(std::vector<Program> ranks, std::function<void()> at_end = {});

  // Called by programs.
  void require(bool condition, const std::string& what) const;
  /// Repeats `look` until it returns true; when it returns false it must not have changed the program's state. It is
  /// tried again only when a word that it read has changed, so that ranks which poll for something that never comes are
  /// found as a deadlock.
  template <class Look>
  void poll_until(Look&& look) {
    for (;;) {
      const std::size_t mark = begin_look();
      if (look()) return;
      go_back(Operation::Kind::pause, mark);
    }
  }
  /// The same for a `look` that does more than read, such as sleep: tried again at once. An endless loop without a
  /// sleep is not detected.
  template <class Look>
  void repeat_until(Look&& look) {
    for (;;) {
      const std::size_t mark = begin_look();
      if (look()) return;
      go_back(Operation::Kind::again, mark);
    }
  }
  void fence() { perform({.kind = Operation::Kind::fence}); }

  // Called by words.
  [[nodiscard]] Value latest(std::size_t location) const;
  std::size_t add_location(Value initial);
  void name(std::size_t location, std::string name);
  Value perform(const Operation& operation);

 private:
  struct Message {
    Value value = 0;
    View view{};
  };
  struct Location {
    std::vector<Message> history;  // of a Plain only the last one, and the number of writes
    std::uint8_t plain_writes = 0;
    std::array<std::uint8_t, max_ranks> plain_reads{};
  };
  struct Rank {
    std::vector<Value> results;  // of the operations so far: all that its program depends on
    View seen, relaxed, released;
    Operation next{};
    std::uint32_t polled = 0;  // locations of the poll that is under way
    bool ended = false, sleeping = false;
  };
  struct State {
    std::vector<Location> locations;
    std::vector<Rank> ranks;
    View fenced{};
  };
  struct Step {
    std::size_t rank = 0;
    Operation operation{};
    Value result = 0;
  };
  struct Suspended {};
  struct Failed {
    std::string what;
  };

  Value perform_outside(const Operation& operation);
  std::size_t begin_look();
  [[noreturn]] void go_back(Operation::Kind kind, std::size_t mark);
  void advance(State& state, std::size_t rank);
  void explore(const State& state);
  void try_rank(const State& state, std::size_t rank);
  void take(const State& state, std::size_t rank, std::size_t choice);
  void at_rest(const State& state);
  Value apply(State& state, std::size_t rank, std::size_t choice);
  Value apply_plain(State& state, std::size_t rank);
  Value write(State& state, std::size_t rank, Value value, const View* continued);
  static void observe(Rank& rank, const Location& location, std::size_t choice);
  [[nodiscard]] static bool can_move(const State& state, std::size_t rank);
  [[nodiscard]] static bool is_local(const Operation& operation);
  [[nodiscard]] static View seen_by_all(const State& state);
  [[nodiscard]] static std::uint64_t fingerprint(const State& state);
  [[nodiscard]] std::string describe(const Step& step) const;
  [[nodiscard]] std::string story() const;

  std::uint64_t states_max_;
  Checker* outer_;
  std::vector<Value> initial_;
  std::vector<std::string> names_;
  std::vector<Program> programs_;
  std::function<void()> at_end_;
  std::unordered_set<std::uint64_t> visited_, reached_;  // by all programs, and before the last one went on
  std::vector<Step> trace_;
  // The program that runs at the moment, and the state of which at_end may ask.
  Rank* running_ = nullptr;
  std::size_t position_ = 0;
  const State* final_ = nullptr;
};

template <class T>
class ModelWord {
 public:
  ModelWord(T initial = 0) : location_(Checker::current().add_location(initial)) {}  // NOLINT: as std::atomic
  ModelWord(const ModelWord&) = delete;
  ModelWord& operator=(const ModelWord&) = delete;
  ModelWord& called(std::string name) {
    Checker::current().name(location_, std::move(name));
    return *this;
  }
  [[nodiscard]] std::size_t location() const { return location_; }

  T load(Order order) const { return ask({.kind = Operation::Kind::load, .order = order}); }
  void store(T value, Order order) { ask({.kind = Operation::Kind::store, .order = order, .value = value}); }
  T fetch_add(T value, Order order) { return ask({.kind = Operation::Kind::add, .order = order, .value = value}); }
  T exchange(T value, Order order) { return ask({.kind = Operation::Kind::exchange, .order = order, .value = value}); }
  bool compare_exchange_strong(T& expected, T value, Order order) {
    const T found = ask({.kind = Operation::Kind::compare, .order = order, .value = value, .expected = expected});
    if (found == expected) return true;
    expected = found;
    return false;
  }
  // A futex: sleeps if the word still has that value, until it is woken. The kernel always looks at the newest one.
  void sleep_while(T value) const { ask({.kind = Operation::Kind::sleep, .value = value}); }
  void wake_sleepers() { ask({.kind = Operation::Kind::wake}); }

 private:
  T ask(Operation operation) const {
    operation.location = location_;
    return static_cast<T>(Checker::current().perform(operation));
  }
  std::size_t location_;
};

// Memory without atomics: a race is a failure.
template <class T>
class ModelPlain {
 public:
  ModelPlain(T initial = {}) : location_(Checker::current().add_location(static_cast<Value>(initial))) {}  // NOLINT
  ModelPlain(const ModelPlain&) = delete;
  ModelPlain& operator=(const ModelPlain&) = delete;
  [[nodiscard]] T get() const {
    return static_cast<T>(Checker::current().perform({.kind = Operation::Kind::read, .location = location_}));
  }
  void set(T value) {
    Checker::current().perform(
        {.kind = Operation::Kind::write, .location = location_, .value = static_cast<Value>(value)});
  }
  ModelPlain& called(std::string name) {
    Checker::current().name(location_, std::move(name));
    return *this;
  }

 private:
  std::size_t location_;
};

/// Stands in for MachineAtomics (atomics.hpp).
struct ModelAtomics {
  using Word = ModelWord<std::uint32_t>;
  using LongWord = ModelWord<std::uint64_t>;
  template <class T>
  using Plain = ModelPlain<T>;
  static void fence() { Checker::current().fence(); }
};

}  // namespace tutti::shm::interleave
