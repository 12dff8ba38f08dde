// core.hpp: the entry of a group's calls; a Group is a handle of it. Its parts are in parts.hpp.
// SPDX-License-Identifier: Apache-2.0
//
// Every rank numbers its calls from 0. Between local peers a small call takes less time than entering it into the lists by which
// deadlines, stalls and failures are watched. So a blocking call is first polled for a bounded time without them, under the runtime's
// lock. If it is not over by then, or fails, it becomes an operation.
//
// Thread rule: methods under "Entry of calls" take the runtime's lock; all others are called under it.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/verbs.hpp>

#include "backend/block_layout.hpp"
#include "backend/registry.hpp"
#include "group/group_backend.hpp"
#include "group/message.hpp"
#include "group/parts.hpp"
#include "group/waiting.hpp"
#include "shm/rank_lock.hpp"

namespace tutti {

class IntranodeExecutor;
class Runtime;

class GroupCore final : public std::enable_shared_from_this<GroupCore>, private OperationListener {
 public:
  GroupCore(std::shared_ptr<Runtime> runtime, GroupFacts facts, const Table& table, GroupBackend backend = {});
  /// A group this process does not belong to: rank −1, and every verb raises.
  GroupCore(std::shared_ptr<Runtime> runtime, std::vector<int> world_of);
  ~GroupCore();
  /// Shared by the handles of the group. The last one of a forked child destroys nothing: what is here is the parent's.
  template <class... Arguments>
  static std::shared_ptr<GroupCore> make(Arguments&&... arguments) {
    return std::shared_ptr<GroupCore>(new GroupCore(std::forward<Arguments>(arguments)...), let_go);
  }

  [[nodiscard]] const GroupFacts& facts() const { return parts_.state.facts; }
  [[nodiscard]] Runtime& runtime() const { return *parts_.state.runtime; }
  [[nodiscard]] const std::shared_ptr<Runtime>& runtime_handle() const { return parts_.state.runtime; }
  [[nodiscard]] std::string_view backend_name() const { return backends_.name(); }
  /// What the group was asked to use.
  [[nodiscard]] const GroupBackend& backend() const { return backend_; }

  /// Held while a thread is inside a call; a second thread raises InvalidArgument.
  class Entry {
   public:
    /// Not entered yet: the calls below do that, as they take the lock anyway.
    Entry() = default;
    Entry(GroupCore& core, std::string_view what);
    ~Entry() {
      if (core_ != nullptr) core_->inside_.store(false, std::memory_order_release);
    }
    std::uint32_t site = 0;  // of the program, as the recorder knows it; 0: not known
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    friend class GroupCore;
    GroupCore* core_ = nullptr;
  };

  // Entry of calls.
  /// A blocking call, tried for a bounded time without being tracked. Null: it is over, as small calls among local peers often are.
  std::shared_ptr<Operation> run(Entry& entry, const CallTerms& terms, Duration timeout, BlockingHook* hook = nullptr);
  /// The same without waiting. The service thread sees to it from then on.
  std::shared_ptr<Operation> start(Entry& entry, const CallTerms& terms, Duration timeout);
  /// Checks such calls and prepares them. Local; throws what is wrong with them.
  std::shared_ptr<CachedCall> prepare(const CallTerms& terms);
  /// Starts a call of a shape that prepare() gave. Throws InvalidArgument if it has another shape.
  std::shared_ptr<Operation> start(Entry& entry, CachedCall& shape, const CallTerms& terms, Duration timeout);
  using Message = MessageTerms;
  /// The same for a message. Without an entry other threads may be inside, too. Null: a send that is over already.
  std::shared_ptr<Operation> start_message(Entry* entry, const Message& message);
  /// A blocking one. Null: it is over, as small ones between local peers often are, and `received` tells what came.
  std::shared_ptr<Operation> run_message(Entry* entry, const Message& message, Received& received);
  /// A message that has come, reserved; null: there is none now.
  std::shared_ptr<Operation> look_for_message(const Message& probe);
  /// The message that a probe has reserved is for others again.
  void release_message(Operation& probe);
  /// See Work::cancel. False for one that has ended.
  bool cancel_message(Operation& operation);
  /// A blocking exchange of two messages, either of which may be missing. A message that is not over yet goes on as an operation.
  struct Exchange {
    std::shared_ptr<Operation> sending, receiving;
    Received received{};  // if nothing is being received any more
  };
  Exchange run_exchange(const Message* sent, const Message* received);
  void abort(std::string_view reason);
  /// See GroupFailure::interrupt.
  void interrupt(Operation& operation);
  /// This rank takes no part in the group's next call, for reasons that its caller found: the call takes its number here, and
  /// the others raise Aborted with the reason instead of waiting.
  void decline(const std::string& reason);
  /// The members that share this host use its memory from now on.
  void use_local_peers(std::shared_ptr<IntranodeExecutor> intranode);

  /// Before the program's first call.
  void use_backend(GroupBackend backend);

  // Called by the runtime.
  /// What can be done now for the calls under way.
  void advance();
  /// Deadlines, stalls, and transfers that broke. Not in every round: see ProgressLoop::poll.
  void look_after(TimePoint now);
  /// Whether calls are under way that make progress only while a thread polls.
  [[nodiscard]] bool must_be_polled() const {
    return !parts_.running.collectives().empty() && backends_.must_be_polled();
  }
  [[nodiscard]] GroupParts& parts() { return parts_; }
  [[nodiscard]] const GroupParts& parts() const { return parts_; }

 private:
  static void let_go(const GroupCore* group);
  void went_wrong(Operation& operation, const std::exception_ptr& thrown) override;
  void collective_ended() override { parts_.refusals.forget_arrived(); }
  [[nodiscard]] inline std::unique_lock<shm::RankLock> enter(Entry* entry, Verb verb, BlockingHook* hook);
  [[nodiscard]] std::shared_ptr<CachedCall> check(const CallTerms& terms);
  [[nodiscard]] CachedCall& admit(const CallTerms& terms);
  std::shared_ptr<Operation> make_operation(CachedCall& shape, const CallTerms& terms, Duration timeout,
                                            std::uint64_t record);
  std::shared_ptr<Operation> start_tracked(CachedCall& shape, const CallTerms& terms, Duration timeout,
                                           std::uint32_t site);

  GroupParts parts_;
  const Table* table_ = nullptr;
  GroupBackend backend_;
  Backends backends_;                             // outlives what was prepared
  std::shared_ptr<IntranodeExecutor> intranode_;  // of the members on this host; null: none
  BlockLayout layout_;                            // working memory of the checks
  std::atomic<bool> inside_{false};               // a thread is; set under the lock
  GroupMessages messages_;
};

}  // namespace tutti
