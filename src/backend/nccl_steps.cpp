// nccl_steps.cpp: which calls NCCL can serve, and what it is asked to do in them.
// SPDX-License-Identifier: Apache-2.0
#include "backend/nccl_steps.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <tutti/verb.hpp>

namespace tutti {
namespace {

using Kind = NcclStep::Kind;

bool is_extremum(Op::Kind op) { return op == Op::Kind::min || op == Op::Kind::max; }
bool is_scaling(Op::Kind op) { return op == Op::Kind::mean || op == Op::Kind::premul; }

/// Of numbers that are reduced as they are; nothing: NCCL has no such type.
std::optional<nccl::DataType> nccl_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
    case DType::uint8: return nccl::DataType::uint8;
    case DType::int8: return nccl::DataType::int8;
    case DType::int32: return nccl::DataType::int32;
    case DType::uint32: return nccl::DataType::uint32;
    case DType::int64: return nccl::DataType::int64;
    case DType::uint64: return nccl::DataType::uint64;
    case DType::float16: return nccl::DataType::float16;
    case DType::bfloat16: return nccl::DataType::bfloat16;
    case DType::float32:
    case DType::complex64: return nccl::DataType::float32;
    case DType::float64:
    case DType::complex128: return nccl::DataType::float64;
    default: return std::nullopt;  // of 16 bits, and float8, whose sums it rounds in ways of its own
  }
}

/// Truth values are 0 and 1: all of them is their minimum, any of them their maximum.
std::optional<nccl::Reduction> reduction_of_booleans(Op::Kind op) {
  switch (op) {
    case Op::Kind::product:
    case Op::Kind::min:
    case Op::Kind::band: return nccl::min;
    case Op::Kind::sum:
    case Op::Kind::max:
    case Op::Kind::bor: return nccl::max;
    default: return std::nullopt;
  }
}

std::optional<nccl::Reduction> nccl_reduction(DType dtype, Op::Kind op) {
  if (dtype == DType::boolean) return reduction_of_booleans(op);
  switch (op) {
    case Op::Kind::premul:  // a sum of its own
    case Op::Kind::sum: return nccl::sum;
    case Op::Kind::mean: return nccl::average;
    case Op::Kind::product: return is_complex(dtype) ? std::nullopt : std::optional(nccl::product);
    case Op::Kind::min: return nccl::min;
    case Op::Kind::max: return nccl::max;
    default: return std::nullopt;
  }
}

std::optional<std::string> refusal_of_reduction(DType dtype, const Op& op, int size) {
  if (op.kind() == Op::Kind::own) return "NCCL has no reductions by functions of the program's own";
  if (!nccl_type(dtype)) return fmt::format("NCCL has no reductions of {}", name_of(dtype));
  if (!nccl_reduction(dtype, op.kind())) return fmt::format("NCCL has no {} of {}", name_of(op), name_of(dtype));
  if (is_floating(dtype) && is_extremum(op.kind()))
    return fmt::format("NCCL's {} of numbers and NaN is a number", name_of(op));
  if (is_small_float(dtype) &&
      (size > 2 || is_scaling(op.kind())))  // of two numbers, there is one rounding in any case
    return fmt::format("NCCL rounds {} after each addition, and not once at the end", name_of(dtype));
  return std::nullopt;
}

/// Blocks of a spec, one per rank, one after the other.
class RankBlocks {
 public:
  explicit RankBlocks(const Spec& spec) : spec_(spec) {
    for (int rank = 0; rank <= spec.size; ++rank) {
      begins_.push_back(next_);
      if (rank < spec.size) next_ += count(rank);
    }
  }
  [[nodiscard]] bool are_even() const { return spec_.counts.empty(); }
  [[nodiscard]] std::int64_t count(int rank) const {
    return are_even() ? spec_.count : spec_.counts[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::int64_t begin(int rank) const { return begins_[static_cast<std::size_t>(rank)]; }

 private:
  const Spec& spec_;
  std::int64_t next_ = 0;
  std::vector<std::int64_t> begins_;
};

/// Collects what one rank does.
class Steps {
 public:
  explicit Steps(const Spec& spec) : spec_(spec), blocks_(spec) {}

  void add(const NcclStep& step) {
    if (step.count > 0) steps_.push_back(step);
  }
  void add_whole(Kind kind) { add({.kind = kind, .count = spec_.count, .peer = spec_.root}); }
  void add_gather() {
    if (spec_.rank != spec_.root) return add_send(spec_.root, 0, blocks_.count(spec_.rank));
    for_each_rank([&](int rank) { add_recv(rank, 0, blocks_.begin(rank), blocks_.count(rank)); });
  }
  void add_scatter() {
    if (spec_.rank != spec_.root) return add_recv(spec_.root, 0, 0, blocks_.count(spec_.rank));
    for_each_rank([&](int rank) {
      if (rank == spec_.rank) add_copy(blocks_.begin(rank), 0, blocks_.count(rank));
      else add_send(rank, blocks_.begin(rank), blocks_.count(rank));
    });
  }
  void add_all_gather() {
    if (blocks_.are_even()) return add_whole(Kind::all_gather);
    for_each_rank([&](int rank) {
      add({.kind = Kind::broadcast, .to = blocks_.begin(rank), .count = blocks_.count(rank), .peer = rank});
    });
  }
  void add_reduce_scatter() {
    if (blocks_.are_even()) return add_whole(Kind::reduce_scatter);
    for_each_rank([&](int rank) {
      add({.kind = Kind::reduce, .from = blocks_.begin(rank), .count = blocks_.count(rank), .peer = rank});
    });
  }
  void add_exchange() {
    for_each_rank([&](int rank) {
      const std::int64_t at = rank * spec_.count;
      if (rank != spec_.rank) add_send(rank, at, spec_.count);
      add_recv(rank, at, at, spec_.count);
    });
  }
  void add_permutation() {
    bool receives = false;
    for (const auto& [source, destination] : spec_.pairs) {
      if (source == spec_.rank && destination != spec_.rank) add_send(destination, 0, spec_.count);
      if (destination != spec_.rank) continue;
      add_recv(source, 0, 0, spec_.count);
      receives = true;
    }
    if (!receives) add({.kind = Kind::zero, .count = spec_.count});
  }
  std::vector<NcclStep> take() { return std::move(steps_); }

 private:
  template <class Act>
  void for_each_rank(Act act) const {
    for (int rank = 0; rank < spec_.size; ++rank) act(rank);
  }
  void add_send(int peer, std::int64_t from, std::int64_t count) {
    add({.kind = Kind::send, .from = from, .count = count, .peer = peer});
  }
  void add_copy(std::int64_t from, std::int64_t to, std::int64_t count) {
    add({.kind = Kind::copy, .from = from, .to = to, .count = count});
  }
  /// What a rank gets of itself lies at `own`, in its input.
  void add_recv(int peer, std::int64_t own, std::int64_t to, std::int64_t count) {
    if (peer == spec_.rank) return add_copy(own, to, count);
    add({.kind = Kind::recv, .to = to, .count = count, .peer = peer});
  }

  const Spec& spec_;
  RankBlocks blocks_;
  std::vector<NcclStep> steps_;
};

}  // namespace

std::optional<std::string> nccl_refusal(const Request& request, int size) {
  if (request.sizes_follow || (request.verb == Verb::all_to_all && !request.sizes.empty()))
    return "NCCL does not exchange sizes";
  if (is_prefix(request.verb)) return "NCCL has no prefix reductions";
  if (!reduces(request.verb)) return std::nullopt;
  const View& any = request.input.present() ? request.input : request.output;
  return refusal_of_reduction(any.dtype(), request.op, size);
}

NcclElement nccl_element(const ExecutionSpec& what) {
  if (!reduces(what.spec.verb)) return {.per_element = static_cast<std::int64_t>(size_of(what.dtype))};
  return {.type = nccl_type(what.dtype).value_or(nccl::DataType::uint8),
          .per_element = is_complex(what.dtype) ? 2 : 1,
          .reduction = nccl_reduction(what.dtype, what.op.kind()).value_or(nccl::sum),
          .is_scaled = what.op.kind() == Op::Kind::premul};
}

std::vector<NcclStep> nccl_steps(const ExecutionSpec& what) {
  Steps steps(what.spec);
  switch (what.spec.verb) {
    case Verb::all_reduce: steps.add_whole(Kind::all_reduce); break;
    case Verb::reduce: steps.add_whole(Kind::reduce); break;
    case Verb::broadcast: steps.add_whole(Kind::broadcast); break;
    case Verb::all_gather: steps.add_all_gather(); break;
    case Verb::reduce_scatter: steps.add_reduce_scatter(); break;
    case Verb::gather: steps.add_gather(); break;
    case Verb::scatter: steps.add_scatter(); break;
    case Verb::all_to_all: steps.add_exchange(); break;
    case Verb::permute: steps.add_permutation(); break;
    default: break;  // those that NCCL does not serve
  }
  return steps.take();
}

}  // namespace tutti
