// snapshot.cpp: reads a rank's records. Nothing in the file is believed before it was checked.
// SPDX-License-Identifier: Apache-2.0
#include "record/snapshot.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <memory>

#include <tutti/dtype.hpp>

#include "base/printable.hpp"
#include "record/clock_fit.hpp"
#include "record/recorder.hpp"
#include "record/ticks.hpp"

namespace tutti::record {
namespace {

template <std::size_t Bytes>
std::string text_of(const Text<Bytes>& text) {
  return printable_text({text.data(), strnlen(text.data(), Bytes)}, "\n");
}

/// A file, or this process's own memory.
struct Source {
  int file = -1;
  const std::byte* memory = nullptr;
  std::size_t bytes = 0;
};

Source source_of(int file) {
  struct stat status {};
  if (fstat(file, &status) != 0) return {};
  return {.file = file, .bytes = static_cast<std::size_t>(status.st_size)};
}

bool read_at(const Source& source, void* into, std::size_t bytes, std::size_t offset) {
  if (offset + bytes > source.bytes) return false;
  auto* to = static_cast<std::byte*>(into);
  if (source.memory != nullptr) {
    std::memcpy(to, source.memory + offset, bytes);
    return true;
  }
  while (bytes > 0) {
    const ssize_t got = pread(source.file, to, bytes, static_cast<off_t>(offset));
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<std::size_t>(got);
    offset += static_cast<std::size_t>(got);
  }
  return true;
}

std::int64_t now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

ClockReading reading_of(const Moment& moment) {
  return {.ticks = moment.ticks.load(), .real_ns = static_cast<std::int64_t>(moment.real_ns.load())};
}

// The system's clock may have been set meanwhile: intervals are those of the clock that nobody sets.
TickClock clock_of(const Fixed& fixed, Alive alive) {
  ClockReading begin = reading_of(fixed.begin), last = reading_of(fixed.latest);
  auto steady = static_cast<std::int64_t>(fixed.latest.steady_ns.load());
  if (alive == Alive::yes) {
    last = {.ticks = ticks(), .real_ns = now_ns(CLOCK_REALTIME)};
    steady = now_ns(CLOCK_MONOTONIC);
  }
  begin.real_ns = last.real_ns - (steady - static_cast<std::int64_t>(fixed.begin.steady_ns.load()));
  return TickClock(begin, last);
}

void read_groups(const Fixed& fixed, const TickClock& clock, Snapshot& into) {
  for (std::size_t place = 0; place < groups_max; ++place) {
    const GroupRow& row = fixed.groups[place];
    GroupRecord& group = into.groups.emplace_back(GroupRecord{.id = row.id.load(),
                                                              .size = static_cast<int>(row.size.load()),
                                                              .rank = static_cast<int>(row.rank.load()),
                                                              .members = text_of(row.members)});
    for (int verb = 0; verb < verb_count; ++verb) {
      const Counters& counters = fixed.counters[place][static_cast<std::size_t>(verb)];
      if (counters.calls.load() == 0) continue;
      group.counts.push_back({.verb = static_cast<Verb>(verb),
                              .calls = counters.calls.load(),
                              .bytes = counters.bytes.load(),
                              .failed = counters.failed.load(),
                              .busy_ns = clock.span_ns(counters.busy.load()),
                              .waited_ns = clock.span_ns(counters.polled.load() + counters.waited.load())});
    }
  }
}

CallRecord call_from(const Entry& entry, const Fixed& fixed, const TickClock& clock) {
  const CallShape& shape = entry.shape;
  CallRecord call{.number = entry.number.load(),
                  .sequence = entry.sequence.load(),
                  .verb = static_cast<Verb>(shape.verb),
                  .state = static_cast<State>(std::min(entry.state.load(), static_cast<std::uint32_t>(State::failed))),
                  .started_ns = clock.at_ns(entry.started.load()),
                  .bytes = shape.bytes,
                  .dtype = shape.dtype,
                  .op = shape.op,
                  .tag = shape.tag,
                  .flags = shape.flags,
                  .group = shape.group};
  if ((shape.flags & CallShape::rooted) != 0 || call.is_message()) call.peer = shape.peer;
  const std::uint64_t ended = entry.ended.load();
  if (call.state == State::at_once && ended <= entry.started.load()) {
    call.ended_ns = call.started_ns;
  } else if (!call.is_under_way()) {
    call.ended_ns = clock.at_ns(ended);
  }
  if (shape.how < names_max) call.how = text_of(fixed.names[shape.how].text);
  if (const std::uint32_t site = entry.site.load(); site < sites_max) call.site = text_of(fixed.sites[site].text);
  return call;
}

void read_calls(const Source& source, const Fixed& fixed, const TickClock& clock, Snapshot& into) {
  const std::uint64_t count = fixed.entry_count.load();
  if (!std::has_single_bit(count) || count > source.bytes / sizeof(Entry) || segment_bytes(count) > source.bytes)
    return;
  const auto ring = std::make_unique<Entry[]>(count);
  if (!read_at(source, ring.get(), count * sizeof(Entry), fixed_bytes())) return;
  // Those that were overwritten while they were copied are newer than what was written before: left out.
  for (std::uint64_t i = 0; i < count; ++i) {
    const Entry& entry = ring[i];
    const std::uint64_t number = entry.number.load();
    if (number == 0 || number % count != i || number + count <= into.written || number > into.written + count ||
        entry.shape.verb >= verb_count || entry.shape.group >= groups_max || entry.shape.dtype >= dtype_count)
      continue;
    into.calls.push_back(call_from(entry, fixed, clock));
  }
  std::ranges::sort(into.calls, {}, &CallRecord::number);
}

void read_steps(const Source& source, const Fixed& fixed, const TickClock& clock, Snapshot& into) {
  const std::uint64_t count = fixed.step_count.load(), calls = fixed.entry_count.load();
  const std::uint64_t written = fixed.steps_written.load();
  if (!std::has_single_bit(count) || count != calls || traced_bytes(count) > source.bytes) return;
  const auto ring = std::make_unique<StepEntry[]>(count);
  if (!read_at(source, ring.get(), count * sizeof(StepEntry), segment_bytes(calls))) return;
  for (std::uint64_t i = 0; i < count; ++i) {
    const StepEntry& entry = ring[i];
    const std::uint64_t number = entry.number.load();
    if (number == 0 || number % count != i || number + count <= written || number > written + count ||
        static_cast<std::uint8_t>(entry.kind) >= step_kind_count)
      continue;
    into.steps.push_back({.group = entry.group,
                          .sequence = entry.sequence,
                          .kind = entry.kind,
                          .started_ns = clock.at_ns(entry.started.load()),
                          .ended_ns = clock.at_ns(entry.ended.load()),
                          .bytes = entry.bytes,
                          .peer = entry.peer,
                          .phase = entry.phase,
                          .tag = entry.tag});
  }
  std::ranges::stable_sort(into.steps, {}, &StepRecord::ended_ns);
}

std::optional<Snapshot> read(const Source& source, Alive alive, bool with_calls) {
  const auto fixed = std::make_unique<Fixed>();
  if (!read_at(source, fixed.get(), sizeof(Fixed), 0)) return std::nullopt;
  if (fixed->magic.load() != magic || fixed->version.load() != version || fixed->fixed_bytes.load() != fixed_bytes())
    return std::nullopt;
  const TickClock clock = clock_of(*fixed, alive);
  Snapshot snapshot{.job = text_of(fixed->job),
                    .host = text_of(fixed->host),
                    .rank = static_cast<int>(fixed->rank.load()),
                    .size = static_cast<int>(fixed->size.load()),
                    .node = static_cast<int>(fixed->node.load()),
                    .process = static_cast<std::int64_t>(fixed->process.load()),
                    .process_started = fixed->process_started.load(),
                    .life = static_cast<Life>(std::min(fixed->life.load(), static_cast<std::uint32_t>(Life::left))),
                    .begin_ns = clock.begin_ns(),
                    .read_ns = clock.end_ns(),
                    .written = fixed->written.load(),
                    .error = text_of(fixed->error),
                    .ending = text_of(fixed->ending),
                    .answers = fixed->answers.load() != 0};
  const std::size_t stack_bytes = std::min<std::size_t>(fixed->stack_bytes.load(), stack_bytes_max);
  snapshot.stack = printable_text({fixed->stack.data(), stack_bytes}, "\n");
  if (fixed->stall.version.load() % 2 == 0) {
    snapshot.stall.number = fixed->stall.entry.load();
    snapshot.stall.step = static_cast<int>(fixed->stall.step.load());
    snapshot.stall.step_count = static_cast<int>(fixed->stall.step_count.load());
    snapshot.stall.text = text_of(fixed->stall.text);
  }
  read_groups(*fixed, clock, snapshot);
  if (with_calls) {
    read_calls(source, *fixed, clock, snapshot);
    // Of a rank that was killed the clock was noted before its last calls.
    for (const CallRecord& call : snapshot.calls)
      snapshot.read_ns = std::max({snapshot.read_ns, call.started_ns, call.ended_ns});
    read_steps(source, *fixed, clock, snapshot);
  }
  return snapshot;
}

}  // namespace

void note_ending(int file, std::string_view how) {
  Text<sizeof(Fixed::ending)> text{};
  std::memcpy(text.data(), how.data(), std::min(how.size(), text.size() - 1));
  [[maybe_unused]] const ssize_t written = pwrite(file, text.data(), text.size(), offsetof(Fixed, ending));
}

const CallRecord* Snapshot::find(std::uint64_t number) const {
  const auto found = std::ranges::lower_bound(calls, number, {}, &CallRecord::number);
  return found != calls.end() && found->number == number ? &*found : nullptr;
}

const CallRecord* Snapshot::oldest_under_way() const {
  const auto found = std::ranges::find_if(calls, &CallRecord::is_under_way);
  return found == calls.end() ? nullptr : &*found;
}

std::string_view name_of_op(std::uint8_t kind) {
  static constexpr std::array<std::string_view, 10> names = {"sum",  "mean", "product", "min",    "max",
                                                             "band", "bor",  "bxor",    "premul", "own"};
  return kind < names.size() ? names[kind] : "unknown";
}

std::optional<Snapshot> read_snapshot(int file, Alive alive) { return read(source_of(file), alive, true); }
std::optional<Snapshot> read_counts(int file, Alive alive) { return read(source_of(file), alive, false); }
std::optional<Snapshot> read_own(const Recorder& recorder) {
  return read({.memory = recorder.memory(), .bytes = recorder.bytes()}, Alive::yes, true);
}

std::string_view name_of(State state) {
  switch (state) {
    case State::under_way: return "under way";
    case State::at_once: return "ended at once";
    case State::ended: return "ended";
    case State::failed: return "failed";
  }
  return "unknown";
}

std::string_view name_of(StepKind kind) {
  static constexpr std::array<std::string_view, step_kind_count> names = {
      "send", "recv", "reduce", "copy", "finish", "fill", "call", "addresses", "in place", "round"};
  return names[static_cast<std::size_t>(kind)];
}

std::string describe(const CallRecord& call) {
  const auto dtype = static_cast<DType>(call.dtype);
  const std::string array =
      fmt::format("{} × {}", tutti::name_of(dtype), call.bytes / std::max<std::size_t>(size_of(dtype), 1));
  if (call.is_message()) {
    const std::string peer = call.peer.value_or(-1) < 0 ? "any rank" : fmt::format("rank {}", *call.peer);
    const std::string tag = call.tag == 0xffffffffu ? "any tag" : fmt::format("tag {}", call.tag);
    return fmt::format("{} {} {} ({}, {})", tutti::name_of(call.verb), call.verb == Verb::send ? "to" : "from", peer,
                       array, tag);
  }
  std::string text = fmt::format("{} #{}", tutti::name_of(call.verb), call.sequence);
  if (call.verb == Verb::barrier) return text;
  text += fmt::format(" ({}", array);
  if ((call.flags & CallShape::reduces) != 0) text += fmt::format(", {}", name_of_op(call.op));
  if (call.peer) text += fmt::format(", root {}", *call.peer);
  return text + ")";
}

}  // namespace tutti::record
