// message.hpp: point-to-point calls of a group.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <tutti/transport.hpp>

#include "group/parts.hpp"
#include "group/waiting.hpp"

namespace tutti {

/// A message as the caller asked for it.
struct MessageTerms {
  Verb verb = Verb::send;
  View data{};
  int peer = 0;
  std::uint32_t tag = 0;
  Duration timeout{};
  bool differentiated = false;  // both ends have to say the same
  bool is_exact = false;        // receive: it must be filled
  bool is_internal = false;     // of the library's own: out of reach of the program's receives
  bool probes = false;          // receive: finds a message, and reserves it
  std::uint8_t kind = 0;        // send: whose array it is; of the library's own: its number, which both ends have, or 0
  const Allocate* allocate = nullptr;  // receive: in place of `data`, where the array is not known before
  Operation* found = nullptr;          // receive: the message that this probe has found
  BlockingHook* hook = nullptr;        // of one that blocks
  std::uint32_t site = 0;              // of the program, as the recorder knows it; 0: not known
};

/// What it says of its array. Inlined, so that it is written where it belongs: copying what was just written in parts waits for it.
[[nodiscard]] inline Signature signature_of(const MessageTerms& message) {
  return {.verb = Verb::send,
          .dtype = message.data.dtype(),
          .flags = message.differentiated ? Signature::differentiated : std::uint8_t{0},
          .count = message.data.count()};
}

class GroupMessages {
 public:
  /// `group` owns this, and is kept by the operations.
  GroupMessages(GroupCore& group, GroupParts& parts)
      : group_(group),
        facts_(parts.state.facts),
        names_(parts.state.names),
        runtime_(parts.state.runtime.get()),
        running_(parts.running),
        failure_(parts.failure),
        records_(parts.state.records) {}

  /// Throws what is wrong with the message, as far as this rank can know.
  void check(const MessageTerms& message) const;
  /// Under way, or over already. Null: a send that is over.
  std::shared_ptr<Operation> launch(const MessageTerms& message);
  /// A blocking one. Null: it is over, as small ones between local peers often are, and `received` tells what came.
  enum class Waiting : std::uint8_t { not_at_all, within_spin_budget };
  std::shared_ptr<Operation> run(const MessageTerms& message, Received& received, Waiting waiting);
  /// A message that has come, reserved for the operation; null: there is none.
  std::shared_ptr<Operation> look(const MessageTerms& probe);
  /// Takes a message back; see Work::cancel.
  bool cancel(Operation& operation);
  /// Ends the operations whose transfers are over.
  void advance();
  /// All members are local peers: a message may be over before anyone need wait.
  void set_all_local() { all_are_local_ = true; }

 private:
  struct Begun {
    const Transfer& transfer;
    std::uint64_t record;
  };
  Begun begin(const MessageTerms& message, int spins);
  std::shared_ptr<Operation> follow(const MessageTerms& message, std::uint64_t record);
  [[nodiscard]] int source_of(const Transfer& transfer, const MessageTerms& message) const;
  [[nodiscard]] std::uint64_t begin_record(const MessageTerms& message) const;
  enum class HasWaited : bool { no, yes };
  void end_record(std::uint64_t number, const MessageTerms& message, int source, HasWaited has_waited) const;
  void write_down(Operation& operation, const MessageTerms& message) const;
  void address(Operation& operation, const MessageTerms& message, std::byte* memory) const;
  void advance(Operation& operation);
  void finish_receive(Operation& operation);
  void refuse_received(Operation& operation);
  void fail_message(Operation& operation, std::string_view why);

  GroupCore& group_;
  const GroupFacts& facts_;
  const GroupNames& names_;
  Runtime* runtime_;
  RunningOperations& running_;
  GroupFailure& failure_;
  const CallRecords& records_;
  bool all_are_local_ = false;
  std::shared_ptr<Operation> next_;  // for the next message; null: taken when it comes
};

}  // namespace tutti
