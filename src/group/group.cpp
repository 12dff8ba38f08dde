// group.cpp: the public face of a group: verbs become requests.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/group.hpp>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "group/core.hpp"
#include "group/runtime.hpp"
#include "group/shrink.hpp"
#include "group/subgroup.hpp"

namespace tutti {
namespace {

const View& or_in_place(const View& out, const View& data) { return out.present() ? out : data; }

[[noreturn]] void refuse_empty_group() {
  throw InvalidArgument("this Group is empty: it was never joined, or split() left this rank out");
}

void wait_for(GroupCore& core, Operation& operation) {
  // The operation ends by its own deadline, plus the time the control network takes to agree on the cause.
  const record::Waiting waiting(core.parts().state.records.recorder(), operation.recorded);
  try {
    core.runtime().wait([&] { return operation.ended(); }, TimePoint::max());
  } catch (...) {
    core.interrupt(operation);
    throw;
  }
  operation.group.reset();
  operation.rethrow();
}

void run_call(const std::shared_ptr<GroupCore>& core, const CallTerms& terms, Duration timeout) {
  if (!core) refuse_empty_group();
  GroupCore::Entry entry;
  if (const auto operation = core->run(entry, terms, timeout)) wait_for(*core, *operation);
}

Received wait_for_message(GroupCore& core, const GroupCore::Message& message) {
  GroupCore::Entry entry;
  Received received;
  const auto operation = core.run_message(&entry, message, received);
  if (!operation) return received;
  wait_for(core, *operation);
  return operation->received();
}

Work start_message(GroupCore& core, const GroupCore::Message& message) {
  GroupCore::Entry entry;
  auto operation = core.start_message(&entry, message);
  return Work(operation ? std::move(operation) : ended_send());
}

MessageTerms probe_for(int from, const MessageOptions& o) {
  if (from == nobody) throw InvalidArgument("probe: nobody sends nothing; probe a rank of the group, or any_source");
  return {.verb = Verb::recv, .peer = from, .tag = o.tag, .timeout = o.timeout, .probes = true};
}

}  // namespace

Request request_of(const AllReduce& c) {
  return {.verb = Verb::all_reduce, .input = c.data, .output = or_in_place(c.out, c.data), .op = c.op};
}
Request request_of(const Reduce& c) {
  return {.verb = Verb::reduce, .input = c.data, .output = or_in_place(c.out, c.data), .op = c.op, .root = c.root};
}
Request request_of(const Broadcast& c) {
  return {.verb = Verb::broadcast, .input = c.data, .output = c.data, .root = c.root};
}
Request request_of(const AllGather& c) {
  return {
      .verb = Verb::all_gather, .input = c.data, .output = c.out, .axis = c.axis, .uneven = c.uneven, .sizes = c.sizes};
}
Request request_of(const Gather& c) {
  return {.verb = Verb::gather,
          .input = c.data,
          .output = c.out,
          .root = c.root,
          .axis = c.axis,
          .uneven = c.uneven,
          .sizes = c.sizes};
}
Request request_of(const ReduceScatter& c) {
  return {.verb = Verb::reduce_scatter, .input = c.data, .output = c.out, .op = c.op, .axis = c.axis, .sizes = c.sizes};
}
Request request_of(const Scatter& c) {
  return {.verb = Verb::scatter, .input = c.data, .output = c.out, .root = c.root, .axis = c.axis, .sizes = c.sizes};
}
Request request_of(const AllToAll& c) {
  return {.verb = Verb::all_to_all,
          .input = c.data,
          .output = c.out,
          .axis = c.split_axis,
          .concat_axis = c.concat_axis,
          .sizes = c.split_sizes,
          .recv_sizes = c.recv_sizes};
}
Request request_of(const Scan& c) {
  return {.verb = Verb::scan, .input = c.data, .output = or_in_place(c.out, c.data), .op = c.op};
}
Request request_of(const ExclusiveScan& c) {
  return {.verb = Verb::exscan, .input = c.data, .output = or_in_place(c.out, c.data), .op = c.op};
}
Request request_of(const Permute& c) {
  return {.verb = Verb::permute, .input = c.data, .output = or_in_place(c.out, c.data), .pairs = c.pairs};
}
Request request_of(const Barrier&) { return {.verb = Verb::barrier}; }

GroupCore& Group::entered() const {
  if (!core_) refuse_empty_group();
  return *core_;
}

int Group::rank() const { return core_ ? core_->facts().rank : -1; }
int Group::size() const { return core_ ? core_->facts().size : 0; }
std::span<const int> Group::members() const {
  return core_ ? std::span<const int>(core_->facts().world_of) : std::span<const int>();
}
std::string_view Group::backend() const { return core_ ? core_->backend_name() : "none"; }

void Group::run(Request request, Duration timeout) const {
  const auto core = core_;  // the handle may be dropped by another thread's callback meanwhile
  run_call(core, terms_of(request), timeout);
}

Work Group::start(Request request, Duration timeout) const {
  GroupCore& group = entered();
  GroupCore::Entry entry;
  return Work(group.start(entry, terms_of(request), timeout));
}

void Group::all_reduce(View data, const ReduceOptions& o) const {
  run_call(core_, {.verb = Verb::all_reduce, .input = data, .output = data, .op = o.op}, o.timeout);
}
void Group::all_reduce(View data, View out, const ReduceOptions& o) const {
  run_call(core_, {.verb = Verb::all_reduce, .input = data, .output = or_in_place(out, data), .op = o.op}, o.timeout);
}
void Group::reduce(View data, const RootedReduceOptions& o) const {
  run_call(core_, {.verb = Verb::reduce, .input = data, .output = data, .op = o.op, .root = o.root}, o.timeout);
}
void Group::reduce(View data, View out, const RootedReduceOptions& o) const {
  const View& result = or_in_place(out, data);
  run_call(core_, {.verb = Verb::reduce, .input = data, .output = result, .op = o.op, .root = o.root}, o.timeout);
}
void Group::broadcast(View data, const RootOptions& o) const {
  run_call(core_, {.verb = Verb::broadcast, .input = data, .output = data, .root = o.root}, o.timeout);
}
void Group::all_gather(View data, View out, const AllGatherOptions& o) const {
  if (o.axis == 0 && !o.uneven && o.sizes.empty())
    return run_call(core_, {.verb = Verb::all_gather, .input = data, .output = out}, o.timeout);
  run(request_of(AllGather{.data = data, .out = out, .axis = o.axis, .uneven = o.uneven, .sizes = o.sizes}), o.timeout);
}
void Group::gather(View data, View out, const GatherOptions& o) const {
  if (o.axis == 0 && !o.uneven && o.sizes.empty())
    return run_call(core_, {.verb = Verb::gather, .input = data, .output = out, .root = o.root}, o.timeout);
  run(request_of(
          Gather{.data = data, .out = out, .root = o.root, .axis = o.axis, .uneven = o.uneven, .sizes = o.sizes}),
      o.timeout);
}
void Group::reduce_scatter(View data, View out, const ReduceScatterOptions& o) const {
  if (o.axis == 0 && o.sizes.empty())
    return run_call(core_, {.verb = Verb::reduce_scatter, .input = data, .output = out, .op = o.op}, o.timeout);
  run(request_of(ReduceScatter{.data = data, .out = out, .op = o.op, .axis = o.axis, .sizes = o.sizes}), o.timeout);
}
void Group::scatter(View data, View out, const ScatterOptions& o) const {
  if (o.axis == 0 && o.sizes.empty())
    return run_call(core_, {.verb = Verb::scatter, .input = data, .output = out, .root = o.root}, o.timeout);
  run(request_of(Scatter{.data = data, .out = out, .root = o.root, .axis = o.axis, .sizes = o.sizes}), o.timeout);
}
void Group::all_to_all(View data, View out, const ExchangeOptions& o) const {
  if (o.split_axis == 0 && o.concat_axis == 0 && o.split_sizes.empty() && o.recv_sizes.empty())
    return run_call(core_, {.verb = Verb::all_to_all, .input = data, .output = out}, o.timeout);
  run(request_of(AllToAll{.data = data,
                          .out = out,
                          .split_axis = o.split_axis,
                          .concat_axis = o.concat_axis,
                          .split_sizes = o.split_sizes,
                          .recv_sizes = o.recv_sizes}),
      o.timeout);
}
void Group::scan(View data, const ReduceOptions& o) const {
  run(request_of(Scan{.data = data, .op = o.op}), o.timeout);
}
void Group::scan(View data, View out, const ReduceOptions& o) const {
  run(request_of(Scan{.data = data, .out = out, .op = o.op}), o.timeout);
}
void Group::exscan(View data, const ReduceOptions& o) const {
  run(request_of(ExclusiveScan{.data = data, .op = o.op}), o.timeout);
}
void Group::exscan(View data, View out, const ReduceOptions& o) const {
  run(request_of(ExclusiveScan{.data = data, .out = out, .op = o.op}), o.timeout);
}
void Group::permute(View data, View out, const Pairs& pairs, const CallOptions& o) const {
  run(request_of(Permute{.data = data, .out = out, .pairs = pairs}), o.timeout);
}
void Group::barrier(const CallOptions& o) const {
  const View nothing{};
  run_call(core_, {.verb = Verb::barrier, .input = nothing, .output = nothing}, o.timeout);
}

void Group::send(View data, int to, const MessageOptions& o) const {
  wait_for_message(entered(), {.verb = Verb::send, .data = data, .peer = to, .tag = o.tag, .timeout = o.timeout});
}
Received Group::recv(View data, int from, const MessageOptions& o) const {
  return wait_for_message(entered(),
                          {.verb = Verb::recv, .data = data, .peer = from, .tag = o.tag, .timeout = o.timeout});
}
Received Group::recv_by(const Allocate& allocate, int from, const MessageOptions& o) const {
  return wait_for_message(
      entered(), {.verb = Verb::recv, .peer = from, .tag = o.tag, .timeout = o.timeout, .allocate = &allocate});
}
Work Group::isend(View data, int to, const MessageOptions& o) const {
  return start_message(entered(), {.verb = Verb::send, .data = data, .peer = to, .tag = o.tag, .timeout = o.timeout});
}
Work Group::irecv(View data, int from, const MessageOptions& o) const {
  return start_message(entered(), {.verb = Verb::recv, .data = data, .peer = from, .tag = o.tag, .timeout = o.timeout});
}
Received Group::sendrecv(View data, int to, View out, int from, const MessageOptions& o) const {
  GroupCore& core = entered();
  GroupCore::Exchange left;
  {
    const GroupCore::Entry entry(core, "sendrecv");
    const GroupCore::Message sent{.data = data, .peer = to, .tag = o.tag, .timeout = o.timeout};
    const GroupCore::Message received{
        .verb = Verb::recv, .data = out, .peer = from, .tag = o.tag, .timeout = o.timeout};
    left = core.run_exchange(&sent, &received);
  }
  // This thread waits for both at once, also if the first goes wrong: between two waits it would have to wake the service thread.
  const auto has_ended = [](const std::shared_ptr<Operation>& one) { return !one || one->ended(); };
  const auto both_ended = [&] { return has_ended(left.receiving) && has_ended(left.sending); };
  try {
    if (!both_ended()) core.runtime().wait(both_ended, TimePoint::max());
  } catch (...) {
    for (const auto& one : {left.receiving, left.sending}) {
      if (one) core.interrupt(*one);
    }
    throw;
  }
  Work receiving = left.receiving ? Work(std::move(left.receiving)) : Work();
  Work sending = left.sending ? Work(std::move(left.sending)) : Work();
  if (receiving.valid()) {
    receiving.wait();
    left.received = receiving.received();
  }
  if (sending.valid()) sending.wait();
  return left.received;
}
Message Group::probe(int from, const MessageOptions& o) const {
  GroupCore& core = entered();
  GroupCore::Entry entry;
  Received received;
  auto operation = core.run_message(&entry, probe_for(from, o), received);
  Message message(core_, operation);  // goes back if waiting fails
  wait_for(core, *operation);
  return message;
}
Message Group::iprobe(int from, const MessageOptions& o) const {
  const GroupCore::Entry entry(entered(), "iprobe");
  auto operation = core_->look_for_message(probe_for(from, o));
  return operation ? Message(core_, std::move(operation)) : Message();
}

Work Group::start(const Send& c) const { return isend(c.data, c.to, {.tag = c.tag, .timeout = c.timeout}); }
Work Group::start(const Receive& c) const { return irecv(c.data, c.from, {.tag = c.tag, .timeout = c.timeout}); }

Prepared Group::prepare(Request request, Duration timeout) const {
  auto shape = entered().prepare(terms_of(request));
  return Prepared({.group = core_, .shape = std::move(shape), .request = std::move(request), .timeout = timeout});
}

Group Group::subgroup(std::span<const int> ranks, const GroupOptions& options) const {
  return Group(make_subgroup(entered(), ranks, options));
}
Group Group::subgroup(std::initializer_list<int> ranks, const GroupOptions& options) const {
  return subgroup(std::span(ranks.begin(), ranks.size()), options);
}
Group Group::split(int color, int key, const GroupOptions& options) const {
  check_split(entered(), options);
  const std::vector<int> ranks = ranks_of_color(*this, color, key, options.timeout);
  return ranks.empty() ? Group() : Group(make_subgroup(entered(), ranks, options, Parent::unbroken));
}

Group Group::shrink(const CallOptions& options) const { return Group(shrink_group(entered(), options.timeout)); }

std::shared_ptr<std::byte> Group::take_memory(std::size_t bytes) const {
  return entered().runtime().take_memory(bytes);
}

void Group::abort(std::string_view reason) const {
  GroupCore& group = entered();
  group.runtime().check_alive();
  group.abort(reason);
  // The members agree on the cause; from here on it holds on this rank too.
  group.runtime().drive([&] { return group.parts().failure.is_broken(); },
                        group.runtime().clock().now() + std::chrono::seconds(10));
}

}  // namespace tutti
