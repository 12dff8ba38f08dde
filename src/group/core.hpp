// core.hpp: what stands behind a Group: its members, its numbered calls, and what broke it.
// SPDX-License-Identifier: Apache-2.0
//
// Invariants:
//  1. Calls are numbered from 0 on every rank alike. A call that a rank refuses takes its number on every rank too (the
//     refuser's peers raise Aborted for it), so that the group stays in step and usable.
//  2. Operations run side by side, in the order of their numbers where their memory overlaps.
//  3. Once broken, a group stays broken, for the same cause in every later call.
//
// Thread rule: methods marked "door" take the runtime's lock; all others are called under it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/transport.hpp>
#include <tutti/verbs.hpp>

#include "backend/block_layout.hpp"
#include "backend/registry.hpp"
#include "control/control.hpp"
#include "group/agreement.hpp"
#include "group/call_history.hpp"
#include "group/operation.hpp"
#include "group/prepared_calls.hpp"
#include "group/stall.hpp"
#include "group/under_way.hpp"
#include "group/waiting.hpp"
#include "shm/rank_lock.hpp"

namespace tutti {

class IntranodeExecutor;
class Runtime;

class GroupCore : public std::enable_shared_from_this<GroupCore> {
 public:
  GroupCore(std::shared_ptr<Runtime> runtime, GroupFacts facts, const Table& table);
  /// A group this process does not belong to: rank −1, and every verb raises.
  GroupCore(std::shared_ptr<Runtime> runtime, std::vector<int> world_of);
  ~GroupCore();

  [[nodiscard]] const GroupFacts& facts() const { return facts_; }
  [[nodiscard]] Runtime& runtime() const { return *runtime_; }
  [[nodiscard]] const std::shared_ptr<Runtime>& runtime_handle() const { return runtime_; }
  [[nodiscard]] std::string_view backend_name() const { return backends_.name(); }

  /// The group's first call, if any of its members are local peers (false: none was made): they find each other's memory,
  /// and use it from then on.
  bool share_memory(Duration timeout);

  class Entry;

  // Door.
  /// A blocking call, tried for a bounded time without being tracked. Null: it is over, as small calls among local peers often are.
  std::shared_ptr<Operation> run(Entry& entry, const CallTerms& terms, Duration timeout, BlockingHook* hook = nullptr);
  /// The same without waiting.
  std::shared_ptr<Operation> start(Entry& entry, const CallTerms& terms, Duration timeout);
  /// Checks such calls and prepares them. Local; throws what is wrong with them.
  std::shared_ptr<CachedCall> prepare(const CallTerms& terms);
  /// Starts a call of a shape that prepare() gave. Throws InvalidArgument if it has another shape.
  std::shared_ptr<Operation> start(Entry& entry, CachedCall& shape, const CallTerms& terms, Duration timeout);
  struct Message {
    Verb verb = Verb::send;
    View data;
    int peer = 0;
    std::uint32_t tag = 0;
    Duration timeout{};
    bool differentiated = false;   // both ends have to say the same
    BlockingHook* hook = nullptr;  // of one that blocks
  };
  [[nodiscard]] static std::uint8_t flags_of(const Message& message) {
    return message.differentiated ? Signature::differentiated : std::uint8_t{0};
  }
  [[nodiscard]] static Signature signature_of(const Message& message);
  std::shared_ptr<Operation> start_message(const Message& message);
  /// A blocking one. Returns nothing if it is over already, as small ones between local peers often are; `source` is then
  /// whom a message came from. Without an entry other threads may be inside, too.
  std::shared_ptr<Operation> run_message(Entry* entry, const Message& message, int& source);
  /// A blocking exchange of two messages, either of which may be missing. What is not over yet goes on.
  struct Exchange {
    std::shared_ptr<Operation> sending, receiving;
  };
  Exchange run_exchange(const Message* sent, const Message* received);
  void abort(std::string_view reason);
  /// The caller leaves this call by an exception. When this returns, the call has ended and its memory is not touched any more: a
  /// collective breaks the group; a send is withdrawn; a message that was received, or is arriving, is kept for the next receive.
  void interrupt(Operation& operation);
  /// This rank takes no part in the group's next call, for reasons that its caller found: the call takes its number here, and
  /// the others raise Aborted with the reason instead of waiting.
  void decline(const std::string& reason);

  /// Held while a thread is inside a call; a second thread raises InvalidArgument.
  class Entry {
   public:
    /// Of nobody yet: the quick calls enter by themselves, as they take the lock anyway.
    Entry() = default;
    Entry(GroupCore& core, std::string_view what);
    ~Entry() { leave(); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    friend class GroupCore;
    void enter(GroupCore& core) {  // under the lock, if nobody is inside
      core.inside_.store(true, std::memory_order_relaxed);
      core_ = &core;
    }
    void leave() {
      if (core_ != nullptr) core_->inside_.store(false, std::memory_order_release);
      core_ = nullptr;
    }
    GroupCore* core_ = nullptr;
  };

  // Called by the runtime.
  /// What can be done now for the calls under way.
  void advance();
  /// Deadlines, stalls, and transfers that broke. Not in every round: see Runtime::poll.
  void look_after(TimePoint now);
  [[nodiscard]] bool has_work() const { return !collectives_.empty() || !messages_.empty(); }
  /// Whether the runtime has it in its list of groups with work. Returns what was so before.
  bool set_listed(bool listed) { return std::exchange(is_listed_, listed); }
  /// A message's transfer is over.
  void note_news(const Operation& operation) { messages_.note_news(operation); }
  TransportListener::Verdict arrived(int world_peer, const Envelope& envelope);
  void break_with(const control::Cause& cause);
  void take_refusal(std::uint64_t sequence, int world_rank, std::string_view text);
  void member_left(int world_rank);
  /// What this rank knows to have differed, and has not broken the group for yet: the last chance to say so.
  [[nodiscard]] std::optional<OpenDifference> what_differed() const;
  /// Whether a peer may still say what differed; asks it again if it is time to.
  [[nodiscard]] bool is_naming_difference(TimePoint now);
  [[nodiscard]] ClosedGroup closed() const;
  /// The error of a group that broke because its members made different calls; null: it did not.
  [[nodiscard]] std::exception_ptr mismatch() const {
    return broken_ && broken_->kind == control::Cause::Kind::mismatch ? error_for(*broken_, nullptr) : nullptr;
  }
  /// The calls that this rank takes part in, as long as it makes no more.
  [[nodiscard]] control::Position position() const;
  void withdraw_receives();
  /// The program no longer waits for any of the calls under way.
  void interrupt_all();
  [[nodiscard]] StallAnswer answer_probe(int world_rank, const StallProbe& probe);
  void take_answer(int world_rank, const StallAnswer& answer);
  [[nodiscard]] bool is_broken() const { return broken_.has_value(); }
  [[nodiscard]] int rank_of(int world_rank) const { return facts_.rank_of(world_rank); }
  [[nodiscard]] std::string name_of_rank(int rank) const;
  /// "all_reduce #412 (float32 × 1048576, sum)", "recv (float32 × 4, tag 3) from rank 1 in the world".
  [[nodiscard]] std::string call_text(const Operation& operation) const;
  /// What the program of this rank waits for in this group, besides that operation, in words; empty: nothing.
  [[nodiscard]] std::string what_is_awaited(const Operation* except) const;

 private:
  [[nodiscard]] std::shared_ptr<CachedCall> check(const CallTerms& terms);
  [[nodiscard]] CachedCall& admit(const CallTerms& terms);
  [[nodiscard]] inline waiting::Spinning spinning(BlockingHook* hook) const;
  [[nodiscard]] inline bool is_undisturbed() const;
  [[nodiscard]] inline std::unique_lock<shm::RankLock> enter(Entry* entry, Verb verb, BlockingHook* hook);
  [[nodiscard]] bool has_thread_inside() const { return inside_.load(std::memory_order_acquire); }
  [[noreturn]] void refuse_second_thread(std::string_view what) const;
  std::shared_ptr<Operation> promote(CachedCall& shape, const CallTerms& terms, Duration timeout,
                                     const std::exception_ptr& error);
  [[nodiscard]] std::vector<int> members_of_host() const;
  [[nodiscard]] std::shared_ptr<IntranodeExecutor> make_intranode_executor(const std::vector<int>& ranks) const;
  std::shared_ptr<Operation> start_tracked(CachedCall& shape, const CallTerms& terms, Duration timeout);
  std::shared_ptr<Operation> make_operation(CachedCall& shape, const CallTerms& terms, Duration timeout);
  std::shared_ptr<Operation> take_operation();
  void track(const std::shared_ptr<Operation>& operation, Duration timeout);
  void check_usable() const;
  void refuse(const std::string& text);
  void forget_refused();
  void launch(Operation& operation);
  void check_message_here(const Message& message) const;
  std::shared_ptr<Operation> launch_message(const Message& message);
  std::shared_ptr<Operation> follow(std::shared_ptr<Operation> operation, Duration timeout);
  void write_down(Operation& operation, const Message& message) const;
  enum class Waiting : std::uint8_t { not_at_all, within_spin_budget };
  std::shared_ptr<Operation> try_message(const Message& message, int& source, Waiting waiting);
  void address(Transfer& transfer, const Message& message, std::byte* memory) const;
  void hand_over(Transfer& transfer, Verb verb);
  [[nodiscard]] bool is_over(const Transfer& transfer, const Message& message) const;
  [[nodiscard]] bool must_wait(std::uint64_t place) const;
  void advance_messages();
  void advance_collectives();
  void advance_collective(Operation& operation);
  void mark_failing(Operation& operation, std::string reason, int world_peer, bool does_not_fit);
  /// Runs what may throw; turns that into the group's failure.
  template <class Function>
  void guarded(Operation& operation, Function progress) {
    try {
      progress();
    } catch (...) {
      went_wrong(operation, std::current_exception());
    }
  }
  void went_wrong(Operation& operation, const std::exception_ptr& thrown);
  void advance_message(Operation& operation);
  void interrupt_locked(Operation& operation);
  [[nodiscard]] std::vector<std::shared_ptr<Operation>> under_way() const;
  bool give_message_back(Operation& operation);
  void finish_receive(Operation& operation);
  void end(Operation& operation, std::exception_ptr error);
  void say_unfinished(const Operation& operation, const std::exception_ptr& error) const;
  void look_at_all(TimePoint now);
  void watch_oldest(TimePoint now);
  [[nodiscard]] bool follows_chains(const Operation& operation) const;
  void watch_messages(TimePoint now);
  [[nodiscard]] static std::uint64_t stall_key(const Operation& operation);
  void ask(int rank, const Operation& operation);
  void ask_some(std::vector<int> ranks, Operation& operation, std::size_t limit);
  [[nodiscard]] bool speaks_for_all(const Operation& operation, TimePoint now);
  void consider_warning(Operation& operation, TimePoint now);
  void probe(Operation& operation, const Progress& where, std::size_t limit);
  void time_out(Operation& operation, TimePoint now);
  [[nodiscard]] std::string stall_report(const Operation& operation, TimePoint now, const Progress& where,
                                         std::string_view what) const;
  void report_mismatch(const Signature& own, const Signature& theirs, int world_peer);
  void report_left(int world_rank, std::uint64_t sequence);
  void report_other_call(const Operation& failing, const control::Position& theirs);
  bool report_failing(Operation& operation, TimePoint now);
  [[nodiscard]] bool is_known_to_live(Operation& failing, TimePoint now);
  void check_unexpected(const Signature& own);
  void send_calls(int world_peer, std::uint64_t before);
  [[nodiscard]] CallOf call_of(const Signature& own) const;
  void open_difference(OpenDifference difference);
  StallAnswer::State compare_calls(int world_peer, const StallProbe& probe);
  void settle_difference(TimePoint now);
  void take_word_on_difference(int world_peer, StallAnswer::State state);
  void compare_with_leaver(int world_rank, const control::Position& theirs);
  void compare_with_leavers();
  void request_abort(const control::Cause& cause);
  /// It is known here that the group breaks; the members have yet to agree, or a peer to say what differed.
  [[nodiscard]] bool is_breaking() const { return proposed_ || (difference_ && difference_->is_certain); }
  [[nodiscard]] Progress progress_of(const Operation& operation) const;
  [[nodiscard]] std::string who() const;
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::exception_ptr error_for(const control::Cause& cause, const Operation* operation) const;
  [[nodiscard]] Operation* running(std::uint64_t sequence) const { return collectives_.find(sequence); }

  struct Refusal {
    int world_rank;
    std::string text;
  };
  // Only so many collectives, the oldest, have been begun and are polled; those behind them wait. However many are under way, a
  // round of progress then costs the same, and so do the tasks and buffers. Enough to keep links busy with small calls.
  // No deadlock: every rank begins its calls in the order of their numbers. Of the calls that some rank has not ended, take the
  // lowest: on each rank it is either over, with all its messages sent, or it is the oldest, and so has been begun.
  static constexpr std::uint64_t window = 64;
  static constexpr std::size_t pool_limit = 1024;  // operations that are kept for reuse

  std::shared_ptr<Runtime> runtime_;
  GroupFacts facts_;
  const Table* table_ = nullptr;
  Backends backends_;
  PreparedCalls prepared_;                        // destroyed before the backends
  std::shared_ptr<IntranodeExecutor> intranode_;  // of the members on this host; null: none
  bool all_are_local_ = false;                    // a message may be over before anyone need wait
  BlockLayout layout_;                            // working memory of the checks
  std::atomic<bool> inside_{false};               // a thread is; set under the lock
  CallHistory calls_;
  std::optional<OpenDifference> difference_;
  std::map<int, control::Position>
      leavers_ahead_;  // by rank in the world: took part in more calls than this one, and left
  std::map<std::pair<std::uint64_t, int>, Signature>
      unexpected_signatures_;                   // of calls not entered yet, by number and rank in the world
  std::map<std::uint64_t, Refusal> refusals_;   // likewise
  std::optional<std::uint64_t> refused_up_to_;  // the latest call that somebody refused; messages for it may lie unread
  CallQueue collectives_;
  MessageSet messages_;
  std::vector<std::shared_ptr<Operation>> news_;    // working memory
  bool turns_changed_ = false;                      // one that waits for its turn may no longer have to
  std::size_t failing_count_ = 0;                   // operations whose transfers failed
  TimePoint earliest_deadline_ = TimePoint::max();  // of any operation; it may have ended
  bool is_listed_ = false;
  bool somebody_left_ = false;  // a member said goodbye
  // Since when the oldest collective has been that, as far as look_after() saw.
  std::uint64_t watched_sequence_ = ~std::uint64_t{0};
  TimePoint watched_since_{}, looked_at_{};
  // Likewise the message that was started first.
  TimePoint watched_message_{}, message_watched_since_{}, messages_looked_at_{}, next_message_watch_{};
  std::vector<std::shared_ptr<Operation>> pool_;
  std::size_t next_pooled_ = 0;
  std::shared_ptr<Operation> message_;  // for the next blocking message; in no list as long as it need not wait
  std::optional<control::Cause> broken_;
  std::optional<control::Cause> proposed_;  // a cause that is on its way through the control network
  TimePoint proposed_at_{};
  StallMap stalls_;
};

}  // namespace tutti
