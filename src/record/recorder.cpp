// recorder.cpp: the parts of the recorder that are not in the way of small calls.
// SPDX-License-Identifier: Apache-2.0
#include "record/recorder.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include <tutti/error.hpp>

#include "base/system_files.hpp"

namespace tutti::record {
namespace {

template <std::size_t Bytes>
void put(Text<Bytes>& into, std::string_view text) {
  const std::size_t length = std::min(text.size(), Bytes - 1);
  if (length > 0) std::memcpy(into.data(), text.data(), length);  // an empty view may point nowhere
  std::memset(into.data() + length, 0, Bytes - length);
}

/// The end of a path says most.
template <std::size_t Bytes>
void put_end(Text<Bytes>& into, std::string_view text) {
  if (text.size() < Bytes) return put(into, text);
  put(into, "…" + std::string(text.substr(text.size() - (Bytes - 4))));
}

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

void take(Moment& moment) {
  moment.ticks.store(ticks(), std::memory_order_relaxed);
  moment.steady_ns.store(clock_ns(CLOCK_MONOTONIC), std::memory_order_relaxed);
  moment.real_ns.store(clock_ns(CLOCK_REALTIME), std::memory_order_relaxed);
}

/// The file's bytes if it can hold a record: committed, because a page that is missing later would be a SIGBUS.
std::size_t usable_bytes(int file) {
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) return 0;
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes < segment_bytes(2) || posix_fallocate(file, 0, status.st_size) != 0) return 0;
  return segment_bytes(std::bit_floor((bytes - fixed_bytes()) / sizeof(Entry)));
}

}  // namespace

Recorder::Recorder(UniqueFd file, const RankFacts& facts, Detail detail) : file_(std::move(file)) {
  bytes_ = usable_bytes(file_.get());
  void* memory = MAP_FAILED;
  if (bytes_ > 0) memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED) {
    file_.reset();
    bytes_ = segment_bytes(entry_count_usual);
    memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  if (memory == MAP_FAILED) throw Error("there is no memory for the records of this rank's calls");
  std::memset(memory, 0, fixed_bytes());
  fixed_ = new (memory) Fixed{};
  answers_.emplace(*fixed_);
  ring_ = reinterpret_cast<Entry*>(static_cast<std::byte*>(memory) + fixed_bytes());
  const std::size_t all = (bytes_ - fixed_bytes()) / sizeof(Entry);
  const std::size_t entries = detail == Detail::traced ? all / 2 : all;
  mask_ = entries - 1;
  fixed_->entry_count.store(entries);
  if (detail == Detail::traced) {
    fixed_->step_count.store(entries);
    steps_.emplace(reinterpret_cast<StepEntry*>(ring_ + entries), entries, fixed_->steps_written);
  }
  fixed_->fixed_bytes.store(fixed_bytes());
  fixed_->version.store(version);
  put(fixed_->job, facts.job);
  put(fixed_->host, facts.host);
  fixed_->rank.store(static_cast<std::uint32_t>(facts.rank));
  fixed_->size.store(static_cast<std::uint32_t>(facts.size));
  fixed_->node.store(static_cast<std::uint32_t>(facts.node));
  fixed_->process.store(static_cast<std::uint64_t>(getpid()));
  fixed_->process_started.store(start_of_process(getpid()));
  take(fixed_->begin);
  take(fixed_->latest);
  note_life(Life::joined);
  fixed_->magic.store(magic, std::memory_order_release);
}

Recorder::~Recorder() {
  note_time();
  munmap(fixed_, bytes_);
}

std::uint16_t Recorder::add_group(std::uint64_t id, int rank, int size, std::string_view members) {
  const auto find = [&](auto is_free) {
    return static_cast<std::size_t>(std::ranges::find_if(fixed_->groups, is_free) - fixed_->groups.begin());
  };
  std::size_t place = find([](const GroupRow& row) { return row.id.load() == 0; });
  if (place >= groups_max - 1) place = find([](const GroupRow& row) { return row.gone.load() != 0; });
  place = std::min(place, groups_max - 1);
  GroupRow& row = fixed_->groups[place];
  if (place < groups_max - 1) {
    for (Counters& counters : fixed_->counters[place]) {
      for (Word* word :
           {&counters.calls, &counters.bytes, &counters.failed, &counters.busy, &counters.polled, &counters.waited})
        word->store(0);
    }
  }
  put(row.members, place == groups_max - 1 ? "more groups" : members);
  row.size.store(static_cast<std::uint32_t>(size));
  row.rank.store(static_cast<std::uint32_t>(rank));
  row.gone.store(0);
  row.id.store(id == 0 ? 1 : id, std::memory_order_release);
  return static_cast<std::uint16_t>(place);
}

void Recorder::remove_group(std::uint16_t place) {
  if (place < groups_max - 1) fixed_->groups[place].gone.store(1);
}

std::uint16_t Recorder::name(std::string_view text) {
  const std::lock_guard guard(texts_);
  const auto [found, is_new] = names_.try_emplace(std::string(text), 0);
  if (is_new && names_.size() < names_max) {
    found->second = static_cast<std::uint32_t>(names_.size());
    put(fixed_->names[found->second].text, text);
  }
  return static_cast<std::uint16_t>(found->second);
}

std::uint32_t Recorder::site(std::string_view text) {
  if (text.empty()) return 0;
  const std::lock_guard guard(texts_);
  if (const auto found = sites_.find(std::string(text)); found != sites_.end()) return found->second;
  if (sites_.size() + 1 >= sites_max) return 0;
  const auto place = static_cast<std::uint32_t>(sites_.size() + 1);
  put_end(fixed_->sites[place].text, text);
  sites_.emplace(text, place);
  return place;
}

std::uint64_t Recorder::end_timed(std::uint64_t number, const CallShape& shape, State how) {
  Entry& entry = ring_[number & mask_];
  const std::uint64_t now = ticks();
  const std::uint64_t took = now - entry.started.load(std::memory_order_relaxed);
  entry.ended.store(now, std::memory_order_relaxed);
  entry.state.store(static_cast<std::uint32_t>(how), std::memory_order_release);
  add(counters_of(shape).busy, took);
  return took;
}

void Recorder::end(std::uint64_t number, std::uint64_t started, const CallShape& shape, State how) {
  if (number == 0) return;
  if (how == State::failed) add(counters_of(shape).failed, 1);
  Entry& entry = ring_[number & mask_];
  if (entry.number.load(std::memory_order_relaxed) == number) {
    end_timed(number, shape, how);
  } else if (started != 0) {
    add(counters_of(shape).busy, ticks() - started);
  }
  if (fixed_->stall.entry.load(std::memory_order_relaxed) == number) note_stall(0, {}, 0, 0);
}

std::uint64_t Recorder::started_at(std::uint64_t number) const {
  const Entry& entry = ring_[number & mask_];
  return entry.number.load(std::memory_order_relaxed) == number ? entry.started.load(std::memory_order_relaxed) : 0;
}

void Recorder::note_site(std::uint64_t number, std::uint32_t site) {
  Entry& entry = ring_[number & mask_];
  if (number != 0 && entry.number.load(std::memory_order_relaxed) == number)
    entry.site.store(site, std::memory_order_relaxed);
}

void Recorder::note_way(std::uint64_t number, std::uint16_t how) {
  Entry& entry = ring_[number & mask_];
  if (number != 0 && entry.number.load(std::memory_order_relaxed) == number) entry.shape.how = how;
}

void Recorder::note_peer(std::uint64_t number, int peer) {
  Entry& entry = ring_[number & mask_];
  if (entry.number.load(std::memory_order_relaxed) == number) entry.shape.peer = peer;
}

void Recorder::note_stall(std::uint64_t number, std::string_view what, int step, int step_count) {
  Stall& stall = fixed_->stall;
  stall.version.fetch_add(1);
  stall.entry.store(number);
  stall.step.store(static_cast<std::uint32_t>(step));
  stall.step_count.store(static_cast<std::uint32_t>(step_count));
  put(stall.text, what);
  stall.version.fetch_add(1);
}

void Recorder::note_error(std::string_view text) {
  const std::lock_guard guard(texts_);
  put(fixed_->error, text);
}

void Recorder::note_life(Life life) {
  fixed_->life.store(static_cast<std::uint32_t>(life));
  note_time();
}

void Recorder::note_time() { take(fixed_->latest); }

// The memory is the parent's. Its place is kept, because handles of groups that lead here lie about in the child.
void Recorder::abandon() {
  if (!file_) return;
  mmap(fixed_, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  file_.reset();
}

}  // namespace tutti::record
