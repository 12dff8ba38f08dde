// group.hpp: a group of ranks and its verbs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/buffer.hpp>
#include <tutti/prepared.hpp>
#include <tutti/request.hpp>
#include <tutti/verbs.hpp>
#include <tutti/work.hpp>

namespace tutti {

class GroupCore;

/// A range whose result can be returned as a vector (std::vector<bool> has no contiguous elements: use bytes there).
template <class R>
concept Returnable = LastingRange<R> && !std::is_same_v<std::ranges::range_value_t<R>, bool>;

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
  void all_reduce(View data, const ReduceOptions& options = {});
  void all_reduce(View data, View out, const ReduceOptions& options = {});
  void reduce(View data, const RootedReduceOptions& options = {});
  void reduce(View data, View out, const RootedReduceOptions& options = {});
  void broadcast(View data, const RootOptions& options = {});
  void all_gather(View data, View out, const JoinOptions& options = {});
  void gather(View data, View out, const JoinOptions& options = {});
  void reduce_scatter(View data, View out, const SplitOptions& options = {});
  void scatter(View data, View out, const SplitOptions& options = {});
  void all_to_all(View data, View out, const ExchangeOptions& options = {});
  void scan(View data, const ReduceOptions& options = {});
  void scan(View data, View out, const ReduceOptions& options = {});
  void exscan(View data, const ReduceOptions& options = {});
  void exscan(View data, View out, const ReduceOptions& options = {});
  void permute(View data, View out, const Pairs& pairs, const CallOptions& options = {});
  void barrier(const CallOptions& options = {});

  // Messages. A message that fails (no room for it, its receive timed out or was cancelled) breaks no group.
  void send(View data, int to, const MessageOptions& options = {});
  /// Into memory with room for the message, or more. Mismatch if it has more elements, or others.
  Received recv(View data, int from, const MessageOptions& options = {});
  /// One element, or a vector of as many as come.
  template <ReceivedByValue T>
  [[nodiscard]] T recv(int from, const MessageOptions& options = {});
  [[nodiscard]] Work isend(View data, int to, const MessageOptions& options = {});
  [[nodiscard]] Work irecv(View data, int from, const MessageOptions& options = {});
  /// Sends to one rank while receiving from another.
  Received sendrecv(View data, int to, View out, int from, const MessageOptions& options = {});
  /// Waits for a message and reserves it for the handle that it returns. Not of nobody.
  [[nodiscard]] Message probe(int from, const MessageOptions& options = {});
  /// The same without waiting: invalid if no such message has come.
  [[nodiscard]] Message iprobe(int from, const MessageOptions& options = {});

  // Any verb, asynchronously.
  [[nodiscard]] Work start(const AllReduce& call);
  [[nodiscard]] Work start(const Reduce& call);
  [[nodiscard]] Work start(const Broadcast& call);
  [[nodiscard]] Work start(const AllGather& call);
  [[nodiscard]] Work start(const Gather& call);
  [[nodiscard]] Work start(const ReduceScatter& call);
  [[nodiscard]] Work start(const Scatter& call);
  [[nodiscard]] Work start(const AllToAll& call);
  [[nodiscard]] Work start(const Scan& call);
  [[nodiscard]] Work start(const ExclusiveScan& call);
  [[nodiscard]] Work start(const Permute& call);
  [[nodiscard]] Work start(const Barrier& call);
  [[nodiscard]] Work start(const Send& call);
  [[nodiscard]] Work start(const Receive& call);
  /// The general form, for bindings: the request as the backend gets it. A `timeout` of zero means the group's.
  void run(Request request, Duration timeout = {});
  [[nodiscard]] Work start(Request request, Duration timeout = {});

  // Any collective, checked and laid out once. Local; throws what is wrong with it.
  [[nodiscard]] Prepared prepare(const AllReduce& call);
  [[nodiscard]] Prepared prepare(const Reduce& call);
  [[nodiscard]] Prepared prepare(const Broadcast& call);
  [[nodiscard]] Prepared prepare(const AllGather& call);
  [[nodiscard]] Prepared prepare(const Gather& call);
  [[nodiscard]] Prepared prepare(const ReduceScatter& call);
  [[nodiscard]] Prepared prepare(const Scatter& call);
  [[nodiscard]] Prepared prepare(const AllToAll& call);
  [[nodiscard]] Prepared prepare(const Scan& call);
  [[nodiscard]] Prepared prepare(const ExclusiveScan& call);
  [[nodiscard]] Prepared prepare(const Permute& call);
  [[nodiscard]] Prepared prepare(const Barrier& call);
  [[nodiscard]] Prepared prepare(Request request, Duration timeout = {});

  // Results by value.
  template <Returnable R>
  [[nodiscard]] auto all_gather(R&& data, const JoinOptions& options = {});
  /// Empty on the other ranks.
  template <Returnable R>
  [[nodiscard]] auto gather(R&& data, const JoinOptions& options = {});
  template <Returnable R>
  [[nodiscard]] auto reduce_scatter(R&& data, const SplitOptions& options = {});
  template <Returnable R>
  [[nodiscard]] auto all_to_all(R&& data, const ExchangeOptions& options = {});
  /// The root's elements on every rank. The other ranks pass an empty range and need not know the count.
  template <Returnable R>
  [[nodiscard]] auto broadcast_from(R&& data_at_root, const RootOptions& options = {});
  /// This rank's part of the root's elements; the others pass an empty range.
  template <Returnable R>
  [[nodiscard]] auto scatter_from(R&& data_at_root, const SplitOptions& options = {});

  /// Memory that the group's ranks on this host read and write without an intermediate copy. Elements are not
  /// initialised. Ordinary memory where no rank shares memory with this one.
  template <Element T>
  [[nodiscard]] Buffer<T> empty(std::size_t count);

  // Groups from groups.
  /// Ranks with the same color come together, ordered by key, then by rank. A negative color stays out (an invalid
  /// Group).
  [[nodiscard]] Group split(int color, int key = 0, const CallOptions& options = {});
  /// The listed ranks of this group, in that order. Only they need call it; anyone else gets a group of rank −1 at
  /// once.
  [[nodiscard]] Group subgroup(std::span<const int> ranks, const CallOptions& options = {});

  /// Breaks the group on every member: calls under way and all later ones raise Aborted with this reason.
  void abort(std::string_view reason);

  [[nodiscard]] const std::shared_ptr<GroupCore>& core() const { return core_; }

 private:
  [[nodiscard]] GroupCore& entered() const;
  Received recv_by(const Allocate& allocate, int from, const MessageOptions& options);
  [[nodiscard]] std::shared_ptr<std::byte> take_memory(std::size_t bytes);
  template <class T>
  [[nodiscard]] std::vector<T> collect(Request request, Duration timeout);
  std::shared_ptr<GroupCore> core_;
};

}  // namespace tutti

#include <tutti/group_results.hpp>
#include <tutti/message_results.hpp>
