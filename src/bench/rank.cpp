// rank.cpp: the rank of any library.
// SPDX-License-Identifier: Apache-2.0
#include "bench/rank.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <chrono>
#include <cstdlib>
#include <optional>

#include <tutti/error.hpp>

#include "bench/line_socket.hpp"

namespace tutti::bench {

std::shared_ptr<void> Library::allocate(std::int64_t bytes, Memory memory) {
  if (memory != Memory::heap) throw Unsupported("only heap memory can be measured with this library");
  constexpr std::size_t alignment = 64;
  const std::size_t rounded = (static_cast<std::size_t>(bytes) + alignment - 1) / alignment * alignment;
  void* memory_of_slot = std::aligned_alloc(alignment, std::max(rounded, alignment));
  if (memory_of_slot == nullptr) throw std::bad_alloc();
  return {memory_of_slot, std::free};
}

Workplace::Workplace(Library& library, const BenchCase& bench_case)
    : library_(library),
      bench_case_(bench_case),
      position_(library.position()),
      counts_(array_counts(bench_case, position_.size)),
      own_(bench_case.dtype, {position_.rank, position_.rank + 1}) {
  library_.prepare(bench_case_);
}

void Workplace::reserve(int calls) {
  const auto element_bytes = static_cast<std::int64_t>(size_of(bench_case_.dtype));
  while (slots_.size() < static_cast<std::size_t>(calls)) {
    Slot slot;
    if (counts_.in > 0) slot.in = library_.allocate(counts_.in * element_bytes, bench_case_.memory);
    slot.out = counts_.out > 0 ? library_.allocate(counts_.out * element_bytes, bench_case_.memory) : slot.in;
    // Accessed before it is timed, so that page faults are not counted.
    if (counts_.out > 0) own_.write(slot.out.get(), counts_.out, 0);
    if (bench_case_.is_stale && counts_.in > 0) own_.write(slot.in.get(), counts_.in, 0);
    slots_.push_back(std::move(slot));
  }
}

// Stale arrays are one pair per root, so that what a broadcast leaves stays what the next one brings.
const Workplace::Slot& Workplace::slot_of(int call) const {
  const int index = bench_case_.is_stale ? root_of_call(batch_ + call, position_.size) : call;
  return slots_[static_cast<std::size_t>(index)];
}

void Workplace::write_inputs(int calls) {
  if (bench_case_.is_stale) return;
  for (int i = 0; i < calls; ++i) own_.write(slots_[static_cast<std::size_t>(i)].in.get(), counts_.in, batch_ + i);
}

double Workplace::run_batch(int calls) {
  using Clock = std::chrono::steady_clock;
  ++batch_;
  write_inputs(calls);
  TimedCall call{.bench_case = bench_case_, .counts = counts_};
  library_.barrier();
  const auto begin = Clock::now();
  for (int i = 0; i < calls; ++i) {
    const Slot& slot = slot_of(i);
    call.in = slot.in.get();
    call.out = slot.out.get();
    call.root = root_of_call(batch_ + i, position_.size);
    library_.call(call);
  }
  const double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls;
  return bench_case_.bench_verb() == BenchVerb(Verb::send) ? us / 2 : us;
}

std::int64_t Workplace::count_wrong(int calls) const {
  const auto element_bytes = static_cast<std::int64_t>(size_of(bench_case_.dtype));
  std::int64_t wrong = 0;
  std::optional<std::pair<RankRange, Pattern>> expected;  // of a sum it is the same for all calls
  for (int i = 0; i < calls; ++i) {
    const auto* out = static_cast<const std::byte*>(slot_of(i).out.get());
    for (const Part& part : expected_parts(bench_case_, position_, root_of_call(batch_ + i, position_.size))) {
      if (!expected || expected->first != part.ranks)
        expected.emplace(part.ranks, Pattern(bench_case_.dtype, part.ranks));
      wrong +=
          expected->second.count_wrong(out + part.begin * element_bytes, part.count, shift_of(i) + part.input_begin);
    }
  }
  return wrong;
}

Answer Workplace::run(const Turn& turn) {
  reserve(bench_case_.is_stale ? position_.size : turn.calls);
  Answer answer;
  run_batch(turn.calls);
  for (int i = 0; i < turn.batches; ++i) answer.us_per_call.push_back(run_batch(turn.calls));
  answer.wrong = count_wrong(turn.calls);
  return answer;
}

namespace {

// Only the calling thread is bound; the library's own threads are not.
void keep_to_one_processor(int rank) {
  cpu_set_t usable;
  if (std::getenv(bind_variable) == nullptr || sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  for (int processor = 0, before = rank % CPU_COUNT(&usable); processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &usable) || before-- > 0) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(processor, &own);
    if (sched_setaffinity(0, sizeof own, &own) != 0)
      throw Error("--bind core: this rank cannot be bound to a processor");
    return;
  }
}

}  // namespace

void serve(Library& library, const std::string& socket_path, const std::string& name) {
  keep_to_one_processor(library.position().rank);
  LineSocket coordinator = LineSocket::connect(socket_path);
  coordinator.write_line(fmt::format("hello {} {} {}", name, library.position().rank, library.describe()));
  std::unique_ptr<Workplace> place;
  while (const auto line = coordinator.read_line()) {
    Answer answer;
    try {
      const Turn turn = turn_from_line(*line);
      if (!place || place->bench_case() != turn.bench_case) {
        place.reset();  // before the next arrays are made
        place = std::make_unique<Workplace>(library, turn.bench_case);
      }
      answer = place->run(turn);
    } catch (const std::exception& error) {
      answer.trouble = error.what();
    }
    coordinator.write_line(to_line(answer));
  }
}

}  // namespace tutti::bench
