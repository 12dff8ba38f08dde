// intranode_execution.hpp: one collective of a group, with what each of its parts asks of the protocol. For intranode_group.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "intranode/intranode_group.hpp"

namespace tutti::intranode {

class IntranodeGroup::IntranodeExecution final : public PreparedCall {
 public:
  enum class Stage : std::uint8_t { waiting, done, gone };

  IntranodeExecution(IntranodeGroup& home, const ExecutionSpec& spec) : group(home), what(spec) {
    identity.phase = what.phase;
    identity.signature = what.signature;
    identity.digest = digest_of(what.signature, what.phase);
  }
  IntranodeExecution(const IntranodeExecution&) = delete;
  IntranodeExecution& operator=(const IntranodeExecution&) = delete;
  ~IntranodeExecution() override {
    cancel();
    std::replace(group.logged_.begin(), group.logged_.end(), static_cast<const IntranodeExecution*>(this),
                 static_cast<const IntranodeExecution*>(nullptr));
  }

  bool start(const Buffers& arrays, const Signature& signature) override;
  void wake_peers() override { group.parts_.segment->notify_all_after_fence(); }
  bool poll() override {
    if (stage == Stage::waiting && group.progress()) group.parts_.segment->notify_all_members();
    return stage == Stage::done;
  }
  void cancel() override {
    if (stage == Stage::waiting) group.skip(*this);
    stage = Stage::gone;
  }
  [[nodiscard]] Progress progress() const override {
    const auto rounds = static_cast<int>(schedule.rounds);
    Progress progress{.how = part == Part::direct ? "arrays in place over shared memory" : name_of(schedule),
                      .step = stage == Stage::done ? rounds
                              : is_oldest()        ? static_cast<int>(group.steps_.rounds_consumed())
                                                   : 0,
                      .step_count = rounds};
    if (stage == Stage::waiting && group.begun_) add_waiting_for(progress.waiting_for);
    return progress;
  }

  /// Peers that keep the oldest execution keep all of them.
  void add_waiting_for(std::vector<int>& ranks) const {
    const auto add = [&](int peer) {
      if (std::find(ranks.begin(), ranks.end(), peer) == ranks.end()) ranks.push_back(peer);
    };
    const IntranodeExecution& oldest = *group.oldest_;
    if (oldest.part == Part::slots) {
      group.steps_.visit_awaited(oldest.slot_work, add);
    } else {
      group.steps_.visit_awaited(oldest.exchange_work, add);
    }
  }
  [[nodiscard]] bool is_oldest() const { return group.oldest_ == this; }

  // What Steps asks for, in each part; and on first contact the look at a peer's signature.
  struct SlotWork : SlotCopier {
    explicit SlotWork(IntranodeExecution& owner) : execution(owner) {}
    void publish(std::int64_t round, int slot) {
      SlotCopier::publish(round, slot);
      if (round == 0) execution.group.write_header(execution);
    }
    void check_peer(int peer, int) { execution.group.check_peer(execution, peer); }
    void finish(std::int64_t round, int slot) {
      SlotCopier::finish(round, slot);
      if (execution.group.parts_.tracing.trace != nullptr) [[unlikely]]
        execution.group.note_step(execution, record::StepKind::round);
    }
    IntranodeExecution& execution;
  };
  // The same for a message that fits into an inline slot: one round, with less to ask.
  struct InlineWork : SlotWork {
    using SlotWork::SlotWork;
    void publish(std::int64_t, int) {
      publish_inline();
      execution.group.write_header(execution);
    }
    void consume(std::int64_t, int, int peer) { consume_inline(peer); }
  };
  // A part without slots: of all (a buffer exchange), or of nobody.
  struct ExchangeWork {
    [[nodiscard]] static int reduce_sources() { return 0; }
    [[nodiscard]] static int reduce_source(int) { return -1; }
    static void reduce_back(std::int64_t, int) {}
    [[nodiscard]] int consume_sources() const { return exchanged ? 0 : execution.what.spec.size - 1; }
    [[nodiscard]] int consume_source(int i) const { return execution.slot_work.reduce_source(i); }
    static bool expects(int, std::int64_t) { return true; }
    void check_peer(int peer, int) { execution.group.check_peer(execution, peer); }
    void publish(std::int64_t, int) {
      // The peer that waits for this line polls it all the time, so it is written in one go.
      BufferInfo here;
      if (!exchanged) {
        here = buffer_info_of(execution.what, execution.arrays, *execution.group.parts_.segment, execution.last_seq());
        here.streams = execution.slot_work.streams(execution.arrays) ? 1 : 0;
      }
      execution.group.write_header(execution);
      if (exchanged) return;
      std::memcpy(execution.group.steps_.inline_slot_of(execution.what.spec.rank).header.payload, &here, sizeof here);
      execution.buffers[static_cast<std::size_t>(execution.what.spec.rank)] = here;
    }
    void consume(std::int64_t, int, int peer) {
      std::memcpy(&execution.buffers[static_cast<std::size_t>(peer)],
                  execution.group.steps_.inline_slot_of(peer).header.payload, sizeof(BufferInfo));
    }
    void finish(std::int64_t, int) {
      if (exchanged) execution.direct.carry_out();
      if (execution.group.parts_.tracing.trace != nullptr) [[unlikely]]
        execution.group.note_step(execution, exchanged ? record::StepKind::in_place : record::StepKind::addresses);
    }
    IntranodeExecution& execution;
    bool exchanged = false;
  };

  enum class Part : std::uint8_t { exchange, slots, direct };
  [[nodiscard]] RunNumber number() const { return {identity.first, identity.signature.sequence, identity.turn}; }
  [[nodiscard]] SequenceNumber last_seq() const {
    return identity.first + (part == Part::exchange ? 1 : 0) + schedule.span - 1;
  }

  IntranodeGroup& group;
  const ExecutionSpec what;
  Buffers arrays;  // of the latest start
  Stage stage = Stage::gone;
  Part part = Part::slots;
  bool exchanges_buffers = false;     // its first part is a buffer exchange
  bool is_single = false;             // its part with slots or inline slots is: one round, not reduced back
  bool expects_next = false;          // the next one's first lines have to come back
  std::int64_t prefetched_lines = 0;  // of the inline slot that is awaited
  int spins_per_prefetch = 1;
  TransferSchedule schedule;
  Identity identity;
  Run run;  // of its part with slots or inline slots; whether it alternates is found out each time
  std::vector<BufferInfo> buffers;
  Direct direct;
  InlineWork slot_work{*this};
  ExchangeWork exchange_work{*this};
};

}  // namespace tutti::intranode
