// cuda_jobs.cpp: what a GPU has to do in a call.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <tutti/error.hpp>

#include "kernel/kernel.hpp"

namespace tutti {
namespace {

using cuda::Batch;

/// Where blocks begin and how long they are, in elements.
struct Blocks {
  explicit Blocks(const Spec& spec) {
    std::int64_t begin = 0;
    for (int rank = 0; rank < spec.size; ++rank) {
      counts.push_back(spec.counts.empty() ? spec.count : spec.counts[static_cast<std::size_t>(rank)]);
      begins.push_back(begin);
      begin += counts.back();
    }
  }
  std::vector<std::int64_t> counts, begins;
};

/// Collects the jobs of one call.
class JobList {
 public:
  JobList(const ExecutionSpec& what, const GpuArrays& arrays, const std::vector<bool>& is_mine)
      : spec_(what.spec), arrays_(arrays), is_mine_(is_mine), bytes_(static_cast<std::int64_t>(size_of(what.dtype))) {}

  [[nodiscard]] std::byte* input(int rank, std::int64_t at = 0) const {
    return shifted(arrays_.inputs[static_cast<std::size_t>(rank)], at);
  }
  /// Null where the result is not for us.
  [[nodiscard]] std::byte* output(int rank, std::int64_t at = 0) const {
    const auto i = static_cast<std::size_t>(rank);
    return is_mine_[i] ? shifted(arrays_.outputs[i], at) : nullptr;
  }
  void add(GpuJob job) {
    std::erase(job.destinations, nullptr);
    if (job.sources.size() == 1) std::erase(job.destinations, job.sources[0]);  // it is there already
    if (job.count > 0 && !job.destinations.empty()) jobs_.push_back(std::move(job));
  }
  void move(std::byte* from, std::byte* to, std::int64_t count) { add({{from}, {to}, count}); }
  [[nodiscard]] std::vector<std::byte*> all_inputs(std::int64_t at = 0) const {
    return each([&](int rank) { return input(rank, at); });
  }
  [[nodiscard]] std::vector<std::byte*> all_outputs(std::int64_t at = 0) const {
    return each([&](int rank) { return output(rank, at); });
  }
  void add_prefixes() {
    GpuJob job{all_inputs(), all_outputs(), spec_.count};
    while (!job.destinations.empty() && job.destinations.back() == nullptr) {
      job.destinations.pop_back();
      job.sources.pop_back();
    }
    if (job.count > 0 && !job.destinations.empty())
      jobs_.push_back(std::move(job));  // the places of the null ones count
  }
  std::vector<GpuJob> take() { return std::move(jobs_); }

 private:
  template <class Get>
  [[nodiscard]] std::vector<std::byte*> each(Get get) const {
    std::vector<std::byte*> all;
    for (int rank = 0; rank < spec_.size; ++rank) all.push_back(get(rank));
    return all;
  }
  [[nodiscard]] std::byte* shifted(std::byte* memory, std::int64_t at) const {
    return memory == nullptr ? nullptr : memory + at * bytes_;
  }

  const Spec& spec_;
  const GpuArrays& arrays_;
  const std::vector<bool>& is_mine_;
  std::int64_t bytes_;
  std::vector<GpuJob> jobs_;
};

void add_blocks(JobList& list, const Spec& spec) {
  const Blocks blocks(spec);
  for (int rank = 0; rank < spec.size; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    const std::int64_t begin = blocks.begins[i], count = blocks.counts[i];
    switch (spec.verb) {
      case Verb::all_gather: list.add({{list.input(rank)}, list.all_outputs(begin), count}); break;
      case Verb::gather: list.move(list.input(rank), list.output(spec.root, begin), count); break;
      case Verb::scatter: list.move(list.input(spec.root, begin), list.output(rank), count); break;
      case Verb::reduce_scatter: list.add({list.all_inputs(begin), {list.output(rank)}, count}); break;
      default:
        for (int peer = 0; peer < spec.size; ++peer)
          list.move(list.input(peer, begin), list.output(rank, peer * count), count);
    }
  }
}

void add_permutation(JobList& list, const Spec& spec) {
  for (int rank = 0; rank < spec.size; ++rank) {
    const auto found = std::ranges::find(spec.pairs, rank, [](const auto& pair) { return pair.second; });
    if (found == spec.pairs.end()) list.add({{}, {list.output(rank)}, spec.count});
    else list.move(list.input(found->first), list.output(rank), spec.count);
  }
}

std::string_view order_free_name(Op::Kind op) {
  switch (op) {
    case Op::Kind::product: return "product";
    case Op::Kind::min: return "min";
    case Op::Kind::max: return "max";
    default: return "sum";
  }
}

std::string_view bit_name(Op::Kind op) { return op == Op::Kind::band ? "and" : op == Op::Kind::bor ? "or" : "xor"; }

bool is_bitwise(Op::Kind op) { return op == Op::Kind::band || op == Op::Kind::bor || op == Op::Kind::bxor; }

std::string bool_kernel(Op::Kind op) {
  const bool all = op == Op::Kind::product || op == Op::Kind::min || op == Op::Kind::band;
  return fmt::format("tutti_{}_bool", all ? "and" : op == Op::Kind::bxor ? "xor" : "or");
}

GpuKernel complex_kernel(Op::Kind op, DType dtype) {
  if (op == Op::Kind::product) return {.name = fmt::format("tutti_product_{}", name_of(dtype))};
  return {.name = dtype == DType::complex64 ? "tutti_sum_float32" : "tutti_sum_float64", .per_element = 2};
}

GpuKernel integer_kernel(Op::Kind op, DType dtype) {
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  if (is_bitwise(op)) return {.name = fmt::format("tutti_{}_bytes", bit_name(op)), .per_element = bytes};
  const bool is_ordered = op == Op::Kind::min || op == Op::Kind::max;
  const bool is_signed = dtype >= DType::int8 && dtype <= DType::int64;
  return {.name = fmt::format("tutti_{}_{}int{}", order_free_name(op), is_ordered && is_signed ? "" : "u", 8 * bytes)};
}

std::string_view kernel_word(DType dtype) { return name_of(dtype); }

void set_scalars(const ExecutionSpec& what, const GpuKernel& kernel, Batch& batch) {
  batch.mode = kernel.mode;
  if (!reduces(what.spec.verb)) return;
  batch.is_scaled = what.op.kind() == Op::Kind::premul;
  batch.factor = what.op.factor();
  batch.is_divided = what.spec.finish;
  batch.divisor = what.divisor;
  if (kernel.mode != Batch::before_own) return;
  kernel::fill_identity(what.op, what.dtype, batch.identity, 1);
}

bool is_aligned(const GpuJob& job) {
  constexpr std::uintptr_t vector = 16;
  const auto is_on_line = [](const std::byte* memory) {
    return reinterpret_cast<std::uintptr_t>(memory) % vector == 0;
  };
  return std::ranges::all_of(job.sources, is_on_line) && std::ranges::all_of(job.destinations, is_on_line);
}

}  // namespace

bool needs_separate_output(Verb verb) { return verb == Verb::all_to_all || verb == Verb::permute; }

std::vector<GpuJob> gpu_jobs(const ExecutionSpec& what, const GpuArrays& arrays, const std::vector<bool>& is_mine) {
  const Spec& spec = what.spec;
  JobList list(what, arrays, is_mine);
  switch (spec.verb) {
    case Verb::all_reduce: list.add({list.all_inputs(), list.all_outputs(), spec.count}); break;
    case Verb::reduce: list.add({list.all_inputs(), {list.output(spec.root)}, spec.count}); break;
    case Verb::broadcast: list.add({{list.input(spec.root)}, list.all_outputs(), spec.count}); break;
    case Verb::scan:
    case Verb::exscan: list.add_prefixes(); break;
    case Verb::permute: add_permutation(list, spec); break;
    default: add_blocks(list, spec);
  }
  return list.take();
}

GpuKernel gpu_kernel(const ExecutionSpec& what) {
  const DType dtype = what.dtype;
  if (!reduces(what.spec.verb)) {
    return {.name = "tutti_move", .per_element = static_cast<std::int64_t>(size_of(dtype)), .moves = true};
  }
  const Op::Kind op = what.op.kind();
  GpuKernel kernel;
  if (dtype == DType::boolean) kernel.name = bool_kernel(op);
  else if (is_complex(dtype)) kernel = complex_kernel(op, dtype);
  else if (is_floating(dtype)) kernel.name = fmt::format("tutti_{}_{}", order_free_name(op), kernel_word(dtype));
  else kernel = integer_kernel(op, dtype);
  if (what.spec.verb == Verb::scan) kernel.mode = Batch::up_to_own;
  if (what.spec.verb == Verb::exscan) kernel.mode = Batch::before_own;
  return kernel;
}

std::vector<Batch> gpu_batches(const ExecutionSpec& what, const GpuKernel& kernel, const std::vector<GpuJob>& jobs) {
  std::vector<Batch> batches;
  int pointers = 0;
  for (const GpuJob& job : jobs) {
    const int needed = static_cast<int>(job.sources.size() + job.destinations.size());
    if (needed > Batch::pointers_max) throw Unsupported(fmt::format("{} arrays are too many for one kernel", needed));
    if (batches.empty() || batches.back().jobs == Batch::jobs_max || pointers + needed > Batch::pointers_max) {
      set_scalars(what, kernel, batches.emplace_back());
      pointers = 0;
    }
    Batch& batch = batches.back();
    batch.job[batch.jobs++] = {.count = job.count * kernel.per_element,
                               .sources = static_cast<std::uint16_t>(job.sources.size()),
                               .destinations = static_cast<std::uint16_t>(job.destinations.size()),
                               .first = static_cast<std::uint16_t>(pointers),
                               .is_aligned = is_aligned(job)};
    for (std::byte* const memory : job.sources) batch.pointer[pointers++] = memory;
    for (std::byte* const memory : job.destinations) batch.pointer[pointers++] = memory;
  }
  return batches;
}

}  // namespace tutti
