// group.hpp: a group of ranks and its verbs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/buffer.hpp>
#include <tutti/options.hpp>
#include <tutti/prepared.hpp>
#include <tutti/request.hpp>
#include <tutti/result.hpp>
#include <tutti/verbs.hpp>
#include <tutti/work.hpp>

namespace tutti {

class GroupCore;

/// A shared handle; copies mean the same group. Its destructor is local, never collective.
///
/// Every rank of the group makes the same calls in the same order. Calls on one group come from one thread at a time (a
/// second thread gets InvalidArgument); different groups may be used concurrently. Every call ends by its deadline. An
/// array is any contiguous range of elements, or a View with strides. Ranks, roots, sources and destinations are ranks
/// in the group.
class Group {
 public:
  Group() = default;
  explicit Group(std::shared_ptr<GroupCore> core) : core_(std::move(core)) {}

  /// −1 on a process that is not a member.
  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  /// Ranks in the world of the members, in group order.
  [[nodiscard]] std::span<const int> members() const;
  [[nodiscard]] std::string_view backend() const;
  [[nodiscard]] bool valid() const { return core_ != nullptr; }

  // Collectives, blocking. One array: in place. Two arrays: from the first to the second.
  void all_reduce(View data, const ReduceOptions& options = {}) const;
  void all_reduce(View data, View out, const ReduceOptions& options = {}) const;
  void reduce(View data, const RootedReduceOptions& options = {}) const;
  void reduce(View data, View out, const RootedReduceOptions& options = {}) const;
  void broadcast(View data, const RootOptions& options = {}) const;
  void all_gather(View data, View out, const AllGatherOptions& options = {}) const;
  void gather(View data, View out, const GatherOptions& options = {}) const;
  void reduce_scatter(View data, View out, const ReduceScatterOptions& options = {}) const;
  void scatter(View data, View out, const ScatterOptions& options = {}) const;
  void all_to_all(View data, View out, const ExchangeOptions& options = {}) const;
  void scan(View data, const ReduceOptions& options = {}) const;
  void scan(View data, View out, const ReduceOptions& options = {}) const;
  void exscan(View data, const ReduceOptions& options = {}) const;
  void exscan(View data, View out, const ReduceOptions& options = {}) const;
  void permute(View data, View out, const Pairs& pairs, const CallOptions& options = {}) const;
  void barrier(const CallOptions& options = {}) const;

  // Messages. A message that fails (no room for it, its receive timed out or was cancelled) breaks no group.
  void send(View data, int to, const MessageOptions& options = {}) const;
  /// Into memory with room for the message, or more. Mismatch if it has more elements, or others.
  Received recv(View data, int from, const MessageOptions& options = {}) const;
  /// One element, or a vector of as many as come.
  template <ReceivedByValue T>
  [[nodiscard]] T recv(int from, const MessageOptions& options = {}) const;
  [[nodiscard]] Work isend(View data, int to, const MessageOptions& options = {}) const;
  [[nodiscard]] Work irecv(View data, int from, const MessageOptions& options = {}) const;
  /// Sends to one rank while receiving from another.
  Received sendrecv(View data, int to, View out, int from, const MessageOptions& options = {}) const;
  /// Waits for a message and reserves it for the handle that it returns. Not of nobody.
  [[nodiscard]] Message probe(int from, const MessageOptions& options = {}) const;
  /// The same without waiting: invalid if no such message has come.
  [[nodiscard]] Message iprobe(int from, const MessageOptions& options = {}) const;

  // Any verb of verbs.hpp, asynchronously.
  template <Collective C>
  [[nodiscard]] Work start(const C& call) const {
    return start(request_of(call), call.timeout);
  }
  [[nodiscard]] Work start(const Send& call) const;
  [[nodiscard]] Work start(const Receive& call) const;
  /// The general form, for bindings: the request as the backend gets it. A `timeout` of zero means the group's.
  void run(Request request, Duration timeout = {}) const;
  [[nodiscard]] Work start(Request request, Duration timeout = {}) const;

  // Any collective, checked and laid out once. Local; throws what is wrong with it.
  template <Collective C>
  [[nodiscard]] Prepared prepare(const C& call) const {
    return prepare(request_of(call), call.timeout);
  }
  [[nodiscard]] Prepared prepare(Request request, Duration timeout = {}) const;

  // Results by value, from one value and from ranges that are not written (const ones, temporaries): group_results.hpp.
  template <detail::Value T>
  [[nodiscard]] T all_reduce(T value, const ReduceOptions& options = {}) const;
  /// The result at the root, the own value elsewhere.
  template <detail::Value T>
  [[nodiscard]] T reduce(T value, const RootedReduceOptions& options = {}) const;
  template <detail::Value T>
  [[nodiscard]] T scan(T value, const ReduceOptions& options = {}) const;
  template <detail::Value T>
  [[nodiscard]] T exscan(T value, const ReduceOptions& options = {}) const;
  template <detail::AnyValue T>
  [[nodiscard]] T broadcast(T value, const RootOptions& options = {}) const;
  template <detail::AnyValue T>
  [[nodiscard]] std::vector<T> all_gather(T value, const CallOptions& options = {}) const;
  /// Empty on the other ranks.
  template <detail::AnyValue T>
  [[nodiscard]] std::vector<T> gather(T value, const RootOptions& options = {}) const;

  template <detail::Unwritten R>
  [[nodiscard]] auto all_reduce(R&& data, const ReduceOptions& options = {}) const;
  template <Returnable R>
  [[nodiscard]] auto all_gather(R&& data, const AllGatherValueOptions& options = {}) const;
  /// Empty on the other ranks.
  template <Returnable R>
  [[nodiscard]] auto gather(R&& data, const GatherValueOptions& options = {}) const;
  template <Returnable R>
  [[nodiscard]] auto reduce_scatter(R&& data, const ReduceScatterValueOptions& options = {}) const;
  template <Returnable R>
  [[nodiscard]] auto all_to_all(R&& data, const AllToAllValueOptions& options = {}) const;
  /// The root's elements on every rank. The other ranks pass an empty range and need not know the count.
  template <Returnable R>
  [[nodiscard]] auto broadcast_from(R&& data_at_root, const RootOptions& options = {}) const;
  /// This rank's part of the root's elements; the others pass an empty range.
  template <Returnable R>
  [[nodiscard]] auto scatter_from(R&& data_at_root, const ScatterValueOptions& options = {}) const;
  /// Ranks give as many as they like: `auto [values, counts] = world.gather_uneven(part)`. Both empty on the other ranks.
  template <Returnable R>
  [[nodiscard]] auto gather_uneven(R&& data, const RootOptions& options = {}) const;
  template <Returnable R>
  [[nodiscard]] auto all_gather_uneven(R&& data, const CallOptions& options = {}) const;

  // Structs, by a function of the program's own. A range in place, a value by value.
  template <detail::StructValue T>
  [[nodiscard]] T all_reduce(T value, const OwnReduceOptions<T>& options) const;
  template <detail::StructValue T>
  [[nodiscard]] T reduce(T value, const OwnRootedReduceOptions<T>& options) const;
  template <detail::StructValue T>
  [[nodiscard]] T scan(T value, const OwnReduceOptions<T>& options) const;
  template <detail::StructRange R>
  void all_reduce(R&& data, const OwnReduceOptions<detail::ValueOf<R>>& options) const;
  template <detail::StructRange R>
  void reduce(R&& data, const OwnRootedReduceOptions<detail::ValueOf<R>>& options) const;
  template <detail::StructRange R>
  void scan(R&& data, const OwnReduceOptions<detail::ValueOf<R>>& options) const;
  template <detail::StructRange R>
  void exscan(R&& data, const OwnReduceOptions<detail::ValueOf<R>>& options) const;

  // Wrong uses that would otherwise be hard to read: they say what to write.
  template <class T>
  void broadcast(View, const T&) const;
  template <detail::OptionValue T>
  void all_reduce(View, const T&) const;
  template <detail::OptionValue T>
  void reduce(View, const T&) const;
  template <class R>
  requires(detail::Text<R> || detail::StructRange<R&>) void all_reduce(R&) const { detail::explain_no_reduction<R>(); }

  /// Memory that the group's ranks on this host read and write without an intermediate copy. Elements are not
  /// initialised. Ordinary memory where no rank shares memory with this one.
  template <Element T>
  [[nodiscard]] Buffer<T> empty(std::size_t count) const;

  // Groups from groups.
  /// Ranks with the same color come together, ordered by key, then by rank. A negative color stays out: an invalid Group.
  [[nodiscard]] Group split(int color, int key = 0, const GroupOptions& options = {}) const;
  /// The listed ranks of this group, in that order. Only they need call it; others get a group of rank −1 at once.
  [[nodiscard]] Group subgroup(std::span<const int> ranks, const GroupOptions& options = {}) const;
  [[nodiscard]] Group subgroup(std::initializer_list<int> ranks, const GroupOptions& options = {}) const;

  /// The members that are left, in their order, as a new group: after a PeerLost, to go on. Every one of them calls it, on
  /// the broken group or on one that is well; all get the same group. If another one is lost meanwhile, it is left out, too.
  /// Throws PeerLost where this rank was given up, or where the others may go on without it: fewer than half are left, and
  /// nothing confirms that the rest has ended.
  [[nodiscard]] Group shrink(const CallOptions& options = {}) const;

  /// Breaks the group on every member: calls under way and all later ones raise Aborted with this reason.
  void abort(std::string_view reason) const;

  [[nodiscard]] const std::shared_ptr<GroupCore>& core() const { return core_; }

 private:
  [[nodiscard]] GroupCore& entered() const;
  Received recv_by(const Allocate& allocate, int from, const MessageOptions& options) const;
  [[nodiscard]] std::shared_ptr<std::byte> take_memory(std::size_t bytes) const;
  template <class Result>
  [[nodiscard]] Result collect(Request request, Duration timeout) const;
  std::shared_ptr<GroupCore> core_;
};

}  // namespace tutti

#include <tutti/group_results.hpp>
#include <tutti/message_results.hpp>
