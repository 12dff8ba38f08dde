// adjoint.cpp: how gradients flow back through a call.
// SPDX-License-Identifier: Apache-2.0
#include "parallel/adjoint.hpp"

#include <fmt/format.h>

#include <utility>

#include <tutti/error.hpp>

namespace tutti::parallel {
namespace {

[[noreturn]] void refuse(const Call& call, std::string_view why) {
  throw Unsupported(fmt::format("{} has no gradient: {}", name_of(call), why));
}

/// What a sum's gradient is to be multiplied by to be that of this reduction.
double factor_of(const Op& op, int size) {
  switch (op.kind()) {
    case Op::Kind::mean: return 1.0 / size;
    case Op::Kind::premul: return op.factor();
    default: return 1.0;
  }
}

bool selects(const Op& op) { return op.kind() == Op::Kind::min || op.kind() == Op::Kind::max; }

/// Throws for reductions that are neither linear nor a choice between the ranks' values.
void check_reduction(const Call& call) {
  switch (call.op.kind()) {
    case Op::Kind::sum:
    case Op::Kind::mean:
    case Op::Kind::premul: return;
    case Op::Kind::min:
    case Op::Kind::max:
      if (!is_prefix(call.verb)) return;
      refuse(call, fmt::format("the running {} has none here; use sum, mean or premul, or stop the gradient",
                               name_of(call.op)));
    default:
      refuse(call, fmt::format("op {} has none here; use sum, mean, premul, min or max, or stop the gradient",
                               name_of(call.op)));
  }
}

/// The verb that undoes a joining or splitting one, along the same axis.
Call split_or_join(const Call& call, Verb verb) {
  return {.verb = verb,
          .root = call.root,
          .axis = call.axis,
          .stack = call.stack,
          .uneven = !call.sizes.empty() && joins(verb),
          .sizes = call.sizes};
}

Call inverse_exchange(const Call& call) {
  if (!call.sizes.empty() && call.axis != call.concat_axis) {
    refuse(call, "split_sizes with different axes to split and to join cannot be undone in one exchange; split evenly");
  }
  Call inverse = call;
  std::swap(inverse.axis, inverse.concat_axis);
  std::swap(inverse.sizes, inverse.recv_sizes);
  return inverse;
}

Call reversed(const Call& call) {
  Call back = call;
  for (auto& [from, to] : back.pairs) std::swap(from, to);
  std::swap(back.destination, back.source);
  return back;
}

Call reversed_scan(const Call& call) {
  Call back = call;
  back.reverse = !back.reverse;
  return back;
}

}  // namespace

Adjoint adjoint_of(const Call& call, std::span<const std::int64_t> shape, int rank, int size) {
  Adjoint adjoint = adjoint_of(call, rank, size);
  (void)output_shape(call, shape, rank, size);  // what forward refuses has no gradient either
  return adjoint;
}

Adjoint adjoint_of(const Call& call, int rank, int size) {
  if (learns_sizes(call)) {
    throw InvalidArgument(fmt::format("{}: gradients need the sizes of all ranks; give them with {}", name_of(call),
                                      call.verb == Verb::all_to_all ? "recv_sizes=" : "sizes="));
  }
  if (call.is_sendrecv) return {.call = reversed(call)};
  if (reduces(call.verb)) {
    check_reduction(call);
    if (selects(call.op)) return {.kind = Adjoint::Kind::select, .call = call};
  }
  const bool off_root = rank != call.root;
  const double factor = factor_of(call.op, size);
  switch (call.verb) {
    case Verb::all_reduce: return {.call = call};
    case Verb::reduce:
      return {.call = {.verb = Verb::broadcast, .root = call.root}, .scale = factor, .adds_own = off_root};
    case Verb::broadcast: return {.call = {.verb = Verb::reduce, .root = call.root}, .is_zero = off_root};
    case Verb::all_gather: return {.call = split_or_join(call, Verb::reduce_scatter)};
    case Verb::reduce_scatter: return {.call = split_or_join(call, Verb::all_gather), .scale = factor};
    case Verb::gather: return {.call = split_or_join(call, Verb::scatter), .adds_own = off_root};
    case Verb::scatter: return {.call = split_or_join(call, Verb::gather), .is_zero = off_root};
    case Verb::all_to_all: return {.call = inverse_exchange(call)};
    case Verb::permute: return {.call = reversed(call)};
    case Verb::scan:
    case Verb::exscan: return {.call = reversed_scan(call)};
    default: refuse(call, "it has no result");
  }
}

}  // namespace tutti::parallel
