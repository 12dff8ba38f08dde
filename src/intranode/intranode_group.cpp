// intranode_group.cpp: collectives of ranks that share a host, carried out in their common memory.
// SPDX-License-Identifier: Apache-2.0
#include "intranode/intranode_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "intranode/intranode_execution.hpp"
#include "intranode/settled_limits.hpp"

namespace tutti::intranode {
namespace {

// Some hundred nanoseconds: what a cache line takes to come over, with room. Pointless if the awaited rank needs this core.
constexpr int spins_per_poll = 64;

/// Of a message in an inline slot.
std::int64_t lines_after_first(std::int64_t bytes) {
  return (std::max(bytes - first_line_bytes, std::int64_t{0}) + line_bytes - 1) / line_bytes;
}

}  // namespace

IntranodeGroup::IntranodeGroup(const Parts& parts) : parts_(parts) {
  parts_.limits = settled(parts.limits, parts.size);
  std::byte* block = parts_.segment->allocate(ControlBlock::bytes(parts_.limits, parts_.size));
  own_ = new (block) ControlBlock();
}

IntranodeGroup::~IntranodeGroup() { parts_.segment->free(reinterpret_cast<std::byte*>(own_)); }

std::uint64_t IntranodeGroup::control_block_offset() const {
  return parts_.segment->offset_of(reinterpret_cast<std::byte*>(own_));
}

void IntranodeGroup::connect(const std::vector<std::uint64_t>& offsets, bool for_oversubscribed) {
  if (for_oversubscribed) parts_.limits = intranode::for_oversubscribed(parts_.limits);
  std::vector<Flags<Native>*> flags;
  std::vector<const Native::LongWord*> consumed;
  places_.clear();
  for (int rank = 0; rank < parts_.size; ++rank) {
    auto* control_block =
        rank == parts_.rank
            ? own_
            : reinterpret_cast<ControlBlock*>(parts_.segment->at(rank, offsets[static_cast<std::size_t>(rank)],
                                                                 ControlBlock::bytes(parts_.limits, parts_.size)));
    Place place{.control_block = control_block};
    for (int i = 0; i < ControlBlock::slot_count(parts_.size); ++i)
      place.slots[i] = control_block->slot(i, parts_.limits);
    places_.push_back(place);
    flags.push_back(&control_block->flags);
    consumed.push_back(&control_block->flags.consumed.seq);
  }
  for (int rank = 0; parts_.size == 2 && rank < 2; ++rank) {  // they may alternate
    const Place& other = places_[static_cast<std::size_t>(1 - rank)];
    std::copy_n(other.slots + Native::slots, Native::slots,
                places_[static_cast<std::size_t>(rank)].slots + 2 * Native::slots);
  }
  parts_.segment->connected(std::move(consumed));
  steps_ = Steps<Native>(parts_.rank, std::move(flags));
}

// Each member counts departures in its own control block: it is still there when the member looks, the others' may be gone.
void IntranodeGroup::depart() {
  parts_.segment->departing();
  for (int rank = 0; rank < static_cast<int>(places_.size()); ++rank) {
    if (rank != parts_.rank)
      places_[static_cast<std::size_t>(rank)].control_block->departed.fetch_add(1, std::memory_order_acq_rel);
  }
}

void IntranodeGroup::reject_round_count(const IntranodeExecution& execution) {
  throw Error(fmt::format("{}: {} pieces are more than one call may have; use larger slots in shared memory",
                          describe(execution.identity.signature), execution.schedule.rounds));
}

std::unique_ptr<PreparedCall> IntranodeGroup::prepare(const ExecutionSpec& what) {
  auto prepared = std::make_unique<IntranodeExecution>(*this, what);
  IntranodeExecution& execution = *prepared;
  const Spec& spec = execution.what.spec;
  const auto element = static_cast<std::int64_t>(size_of(what.dtype));
  execution.schedule = schedule_of(spec, element, parts_.limits);
  if (static_cast<std::uint64_t>(execution.schedule.rounds) > execution.schedule.span) reject_round_count(execution);
  execution.exchanges_buffers = is_worth_exchanging(spec, element, reach());
  execution.slot_work.prepare(execution.what, execution.schedule, places_, parts_.limits);
  const TransferSchedule& m = execution.schedule;
  execution.run = {.span = m.span,
                   .rounds = m.rounds,
                   .publishes = m.publishes,
                   .in_slots = !m.is_inline,
                   .hears_all = m.reduces_back || execution.slot_work.consume_sources() == parts_.size - 1,
                   .reduces_back = m.reduces_back};
  execution.is_single = m.rounds == 1 && !m.reduces_back;
  execution.expects_next = !m.reduces_back && (!m.is_inline || parts_.size > 2);
  const bool prefetches = m.is_inline && parts_.size == 2;
  execution.prefetched_lines = prefetches ? lines_after_first(execution.slot_work.first_message_bytes()) : 0;
  execution.spins_per_prefetch = execution.prefetched_lines > 2 ? static_cast<int>(execution.prefetched_lines) : 1;
  return prepared;
}

// A single round with no execution before it takes a short cut: with a short message it takes less time than a cache line to travel.
bool IntranodeGroup::IntranodeExecution::start(const Buffers& given, const Signature& signature) {
  arrays = given;
  identity.signature.sequence = signature.sequence;
  identity.signature.history = signature.history;
  group.enqueue(*this);
  bool published = false;
  if (is_single && !exchanges_buffers && is_oldest()) {
    group.begin_slots(*this);
    if (group.spin<&IntranodeGroup::advance_single>(*this)) group.end_oldest();
    published = group.steps_.take_notify_due();
  } else {
    published = group.progress();
  }
  if (published && stage != Stage::done) group.parts_.segment->notify_all_members();
  return stage == Stage::done;
}

// The numbers are the same on every member: they come from the call, and from the order of executions within it.
inline void IntranodeGroup::enqueue(IntranodeExecution& execution) {
  const std::uint64_t sequence = execution.identity.signature.sequence;
  const bool is_first = sequence != sequence_;  // of its call
  const std::uint64_t step = is_first ? 1 : next_step_;
  const std::uint64_t before = is_first ? 0 : executions_of_call_;
  if (step + execution.schedule.span + 1 >= (std::uint64_t{1} << step_bits)) [[unlikely]]
    reject_round_count(execution);
  execution.part = execution.exchanges_buffers ? IntranodeExecution::Part::exchange : IntranodeExecution::Part::slots;
  execution.identity.first = (sequence << step_bits) + step;
  execution.identity.turn = sequence + before;
  execution.run.alternates = execution.schedule.alternates && is_first;
  const unsigned parts = execution.exchanges_buffers ? 2 : 1;
  sequence_ = sequence;
  next_step_ = step + execution.schedule.span + parts - 1;
  executions_of_call_ = before + parts;
  execution.stage = IntranodeExecution::Stage::waiting;
  if (oldest_ == nullptr) {
    oldest_ = &execution;
  } else {
    later_.push_back(&execution);
  }
}

// If the same execution is in this place of the log already, only its number is new.
inline void IntranodeGroup::log_signature(IntranodeExecution& execution) {
  const IntranodeExecution*& logged = logged_[execution.identity.turn % logged_.size()];
  if (logged == &execution) return own_->log.renumber(execution.identity.turn, execution.identity.first);
  own_->log.write(execution.identity);
  logged = &execution;
}

inline void IntranodeGroup::begin(IntranodeExecution& execution) {
  if (execution.part == IntranodeExecution::Part::slots) return begin_slots(execution);
  begun_ = true;
  if (parts_.tracing.trace != nullptr) step_begun_ = record::ticks();
  log_signature(execution);
  execution.buffers.resize(places_.size());
  execution.exchange_work.exchanged = execution.part == IntranodeExecution::Part::direct;
  const bool exchange = execution.part == IntranodeExecution::Part::exchange;
  steps_.begin(execution.number(), {.span = exchange ? 1 : execution.schedule.span,
                                    .rounds = 1,
                                    .publishes = exchange,
                                    .in_slots = false,
                                    .hears_all = exchange,
                                    .after_exchange = !exchange});
}

inline void IntranodeGroup::begin_slots(IntranodeExecution& execution) {
  begun_ = true;
  if (parts_.tracing.trace != nullptr) [[unlikely]]
    step_begun_ = record::ticks();
  log_signature(execution);
  steps_.begin(execution.number(), execution.run);
  execution.slot_work.begin(execution.arrays, steps_.inline_slot());
}

// The buffer exchange is over: all members know the same and draw the same conclusion.
void IntranodeGroup::continue_after_exchange(IntranodeExecution& execution) {
  const auto element = static_cast<std::int64_t>(size_of(execution.what.dtype));
  const DirectWay way = direct_way(execution.what.spec, element, execution.buffers, reach());
  execution.direct.begin(way, {.what = &execution.what,
                               .arrays = &execution.arrays,
                               .all = &execution.buffers,
                               .segment = parts_.segment,
                               .stream_bytes_min = parts_.limits.stream_bytes_min});
  execution.part = way == DirectWay::none ? IntranodeExecution::Part::slots : IntranodeExecution::Part::direct;
  ++execution.identity.first;
  ++execution.identity.turn;
  begin(execution);
}

inline bool IntranodeGroup::advance_single(IntranodeExecution& execution) {
  using SlotWork = IntranodeExecution::SlotWork;
  return execution.schedule.is_inline ? steps_.advance_single<false>(execution.slot_work)
                                      : steps_.advance_single<true, SlotWork>(execution.slot_work);
}

inline bool IntranodeGroup::advance(IntranodeExecution& execution) {
  switch (execution.part) {
    case IntranodeExecution::Part::slots:
      return execution.is_single ? advance_single(execution)
                                 : steps_.advance<IntranodeExecution::SlotWork>(execution.slot_work);
    case IntranodeExecution::Part::direct: return steps_.advance(execution.exchange_work) && steps_.is_over();
    case IntranodeExecution::Part::exchange: break;
  }
  if (!steps_.advance(execution.exchange_work)) return false;
  continue_after_exchange(execution);
  return advance(execution);
}

// Polls until the execution is done, or until polling is no longer worth it.
template <bool (IntranodeGroup::*advance_execution)(IntranodeGroup::IntranodeExecution&)>
inline bool IntranodeGroup::spin(IntranodeExecution& execution) {
  const int spins_max = parts_.oversubscribed ? 1 : spins_per_poll;
  try {
    for (int spins = 0, prefetch_at = 0; spins < spins_max; ++spins) {
      if ((this->*advance_execution)(execution)) return true;
      if (steps_.moved()) spins = prefetch_at = 0;
      if (execution.prefetched_lines == 0 || spins < prefetch_at) continue;
      prefetch_awaited(execution);
      prefetch_at += execution.spins_per_prefetch;
    }
  } catch (...) {
    parts_.segment->notify_all_members();  // peers may sleep until they see what was published before the failure
    throw;
  }
  return false;
}

// A step begins where the one before it ended; in between, the rank waits for others.
void IntranodeGroup::note_step(const IntranodeExecution& execution, record::StepKind kind) {
  parts_.tracing.trace->note(
      {.group = parts_.tracing.group, .sequence = execution.identity.signature.sequence, .kind = kind}, step_begun_);
  step_begun_ = record::ticks();
}

// True if something was published and no peer has been notified of it yet.
bool IntranodeGroup::progress() {
  while (oldest_ != nullptr) {
    if (!begun_) begin(*oldest_);
    if (!spin<&IntranodeGroup::advance>(*oldest_)) break;
    end_oldest();
  }
  return steps_.take_notify_due();
}

inline void IntranodeGroup::dequeue_oldest() {
  begun_ = false;
  oldest_ = later_.empty() ? nullptr : later_.front();
  if (oldest_ != nullptr) later_.erase(later_.begin());
}

inline void IntranodeGroup::end_oldest() {
  IntranodeExecution& execution = *oldest_;
  execution.stage = IntranodeExecution::Stage::done;
  dequeue_oldest();
  if (execution.expects_next) expect_next(execution);
}

// The next call is most likely like this one. Others have read the lines of the slot that it will write first, and fetching them back
// takes as long as sending a message, so that is begun now. Roots may take turns: it does not matter whether this rank published anything
// in this call. Of an inline slot that several ranks wait for, only the second line is fetched: they poll the first, and would take it away
// again.
inline void IntranodeGroup::expect_next(const IntranodeExecution& execution) {
  constexpr std::int64_t lines_max = 8;
  if (execution.schedule.is_inline) {
    Native::InlineHeader& next = own_->flags.inline_slots[(execution.identity.turn + 1) % Native::inline_slots].header;
    const bool has_second = execution.slot_work.first_message_bytes() > first_line_bytes;
    if (has_second) shm::expect_write(next.payload + first_line_bytes);
    return;
  }
  std::byte* const slot = places_[static_cast<std::size_t>(parts_.rank)].slots[steps_.place_of(0, 1)];
  const std::int64_t bytes = std::min(execution.slot_work.first_message_bytes(), lines_max * line_bytes);
  for (std::int64_t at = 0; at < bytes; at += line_bytes) shm::expect_write(slot + at);
}

// With two ranks, the waiting rank polls every cache line of the peer's inline slot, not just the flag. That disturbs nobody until the
// peer writes them, and then the lines arrive together. While the peer writes many lines, polling may take one away that is not full yet;
// so the more lines there are, the less often they are polled.
inline void IntranodeGroup::prefetch_awaited(const IntranodeExecution& execution) const {
  const ControlBlock& other = *places_[static_cast<std::size_t>(1 - parts_.rank)].control_block;
  const auto* const inline_slot = reinterpret_cast<const std::byte*>(&other.flags.inline_slots[steps_.inline_slot()]);
  for (std::int64_t line = 1; line <= execution.prefetched_lines; ++line)
    __builtin_prefetch(inline_slot + line * line_bytes);
}

// What stands in this rank's inline slot beside the sequence number.
inline void IntranodeGroup::write_header(const IntranodeExecution& execution) {
  Native::InlineHeader& header = steps_.inline_slot_of(parts_.rank).header;
  header.digest = execution.identity.digest;
  header.history = execution.identity.signature.history;
}

// First contact with a peer in an execution. It is in round 0, too, so this rank may read its inline slot.
inline void IntranodeGroup::check_peer(const IntranodeExecution& execution, int peer) {
  const Native::InlineHeader& theirs = steps_.inline_slot_of(peer).header;
  if (theirs.digest != execution.identity.digest) compare(peer, execution.identity);
  if (theirs.history != execution.identity.signature.history) [[unlikely]]
    compare_histories(peer, execution.identity, theirs.history);
}

/// Throws if the peer's signature of that execution is another. An execution that it left out is no reason.
void IntranodeGroup::compare(int peer, const Identity& mine) const {
  const auto found = places_[static_cast<std::size_t>(peer)].control_block->log.read(mine);
  if (!found || (found->signature.is_same_call(mine.signature) && found->phase == mine.phase)) return;
  throw SignatureDiffers(fmt::format("rank {} asked for {}, rank {} for {}", parts_.rank, describe(mine.signature),
                                     peer, describe(found->signature)),
                         peer, found->signature);
}

// Names the first execution that differs and that both still have in their logs. The group finds older ones.
void IntranodeGroup::compare_histories(int peer, const Identity& mine, std::uint32_t theirs) const {
  if (histories_agree(mine.signature.history, theirs)) return;
  constexpr std::uint64_t kept = SignatureLog::entry_count;
  for (std::uint64_t turn = mine.turn - std::min(mine.turn, kept - 1); turn < mine.turn; ++turn) {
    const SequenceNumber seq = own_->log.seq_at(turn);
    Identity before{.first = seq, .turn = turn};
    before.signature.sequence = seq >> step_bits;
    const auto own = own_->log.read(before);
    if (seq == 0 || !own) continue;
    before.phase = own->phase;
    before.signature = own->signature;
    compare(peer, before);
  }
  Signature differing = mine.signature;
  differing.history = theirs;
  throw SignatureDiffers(
      fmt::format("ranks {} and {} made different calls before {}", parts_.rank, peer, describe(mine.signature)), peer,
      differing);
}

void IntranodeGroup::skip(IntranodeExecution& execution) {
  if (execution.is_oldest()) {
    if (begun_) {
      steps_.abandon();
      parts_.segment->notify_all_members();
    }
    dequeue_oldest();
  } else {
    later_.erase(std::find(later_.begin(), later_.end(), &execution));
  }
}

}  // namespace tutti::intranode
