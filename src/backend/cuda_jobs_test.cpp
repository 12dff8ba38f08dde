// cuda_jobs_test.cpp: the jobs of every verb, carried out here on integers, and how they are put into launches.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda_jobs.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include <tutti/error.hpp>

namespace tutti {
namespace {

using Values = std::vector<std::int32_t>;

ExecutionSpec spec_of(Verb verb, int size, std::int64_t count) {
  ExecutionSpec what;
  what.spec.verb = verb;
  what.spec.size = size;
  what.spec.count = count;
  what.spec.root = size - 1;
  what.dtype = DType::int32;
  return what;
}

/// One batch after the other, as the kernels do it: reductions and prefixes by sum, moves by bytes.
void carry_out(const std::vector<cuda::Batch>& batches, bool moves) {
  for (const cuda::Batch& batch : batches) {
    for (int j = 0; j < batch.jobs; ++j) {
      const cuda::Job& job = batch.job[j];
      void* const* const pointers = batch.pointer + job.first;
      const auto count = static_cast<std::size_t>(job.count) / (moves ? sizeof(std::int32_t) : 1);
      for (std::size_t i = 0; i < count; ++i) {
        std::int32_t sum = 0;
        for (int k = 0; k < job.sources; ++k) {
          const std::int32_t before = sum;
          sum += static_cast<const std::int32_t*>(pointers[k])[i];
          if (batch.mode == cuda::Batch::everything || k >= job.destinations) continue;
          auto* const to = static_cast<std::int32_t*>(pointers[job.sources + k]);
          if (to != nullptr) to[i] = batch.mode == cuda::Batch::up_to_own ? sum : before;
        }
        if (batch.mode != cuda::Batch::everything) continue;
        for (int k = 0; k < job.destinations; ++k) static_cast<std::int32_t*>(pointers[job.sources + k])[i] = sum;
      }
    }
  }
}

/// What every rank gets; each input is `in` elements long, each output `out`, and rank r's element i is 100 (r + 1) + i.
std::vector<Values> results(const ExecutionSpec& what, std::size_t in, std::size_t out, std::vector<bool> mine = {}) {
  const auto size = static_cast<std::size_t>(what.spec.size);
  if (mine.empty()) mine.assign(size, true);
  std::vector<Values> inputs(size, Values(in)), outputs(size, Values(out, -1));
  GpuArrays arrays;
  for (std::size_t r = 0; r < size; ++r) {
    std::iota(inputs[r].begin(), inputs[r].end(), std::int32_t(100 * (r + 1)));
    arrays.inputs.push_back(reinterpret_cast<std::byte*>(inputs[r].data()));
    arrays.outputs.push_back(reinterpret_cast<std::byte*>(outputs[r].data()));
  }
  const GpuKernel kernel = gpu_kernel(what);
  carry_out(gpu_batches(what, kernel, gpu_jobs(what, arrays, mine)), kernel.moves);
  return outputs;
}

TEST(CudaJobs, ReduceAndScan) {
  EXPECT_EQ(results(spec_of(Verb::all_reduce, 3, 2), 2, 2), (std::vector<Values>(3, {600, 603})));
  EXPECT_EQ(results(spec_of(Verb::reduce, 3, 2), 2, 2), (std::vector<Values>{{-1, -1}, {-1, -1}, {600, 603}}));
  EXPECT_EQ(results(spec_of(Verb::scan, 3, 1), 1, 1), (std::vector<Values>{{100}, {300}, {600}}));
  EXPECT_EQ(results(spec_of(Verb::exscan, 3, 1), 1, 1), (std::vector<Values>{{0}, {100}, {300}}));
  EXPECT_EQ(results(spec_of(Verb::reduce_scatter, 2, 2), 4, 2), (std::vector<Values>{{300, 302}, {304, 306}}));
}

TEST(CudaJobs, Move) {
  EXPECT_EQ(results(spec_of(Verb::broadcast, 3, 2), 2, 2), (std::vector<Values>(3, {300, 301})));
  EXPECT_EQ(results(spec_of(Verb::all_gather, 2, 2), 2, 4), (std::vector<Values>(2, {100, 101, 200, 201})));
  EXPECT_EQ(results(spec_of(Verb::gather, 2, 2), 2, 4)[1], (Values{100, 101, 200, 201}));
  EXPECT_EQ(results(spec_of(Verb::scatter, 2, 2), 4, 2), (std::vector<Values>{{200, 201}, {202, 203}}));
  EXPECT_EQ(results(spec_of(Verb::all_to_all, 2, 2), 4, 4),
            (std::vector<Values>{{100, 101, 200, 201}, {102, 103, 202, 203}}));
  ExecutionSpec uneven = spec_of(Verb::all_gather, 2, 0);
  uneven.spec.counts = {1, 3};
  EXPECT_EQ(results(uneven, 3, 4)[0], (Values{100, 200, 201, 202}));
}

TEST(CudaJobs, PermuteGivesZerosWhereNothingArrives) {
  ExecutionSpec what = spec_of(Verb::permute, 3, 2);
  what.spec.pairs = {{0, 1}, {1, 0}};
  EXPECT_EQ(results(what, 2, 2), (std::vector<Values>{{200, 201}, {100, 101}, {0, 0}}));
}

TEST(CudaJobs, OnlyForTheRanksOfOneGpu) {
  EXPECT_EQ(results(spec_of(Verb::all_reduce, 3, 1), 1, 1, {true, false, true}),
            (std::vector<Values>{{600}, {-1}, {600}}));
  EXPECT_EQ(results(spec_of(Verb::scan, 3, 1), 1, 1, {false, true, false}), (std::vector<Values>{{-1}, {300}, {-1}}));
}

TEST(CudaJobs, AnArrayThatIsItsOwnResultIsNotMoved) {
  const ExecutionSpec what = spec_of(Verb::broadcast, 2, 4);
  Values a(4), b(4);
  auto* const root = reinterpret_cast<std::byte*>(a.data());
  auto* const other = reinterpret_cast<std::byte*>(b.data());
  const auto jobs = gpu_jobs(what, {.inputs = {nullptr, root}, .outputs = {other, root}}, {true, true});
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].destinations, (std::vector<std::byte*>{other}));
}

TEST(CudaJobs, AreSplitOverLaunches) {
  const int size = 8;
  const ExecutionSpec what = spec_of(Verb::all_to_all, size, 1);
  std::vector<Values> memory(16, Values(8));
  GpuArrays arrays;
  for (std::size_t r = 0; r < 8; ++r) {
    arrays.inputs.push_back(reinterpret_cast<std::byte*>(memory[r].data()));
    arrays.outputs.push_back(reinterpret_cast<std::byte*>(memory[8 + r].data()));
  }
  const auto batches = gpu_batches(what, gpu_kernel(what), gpu_jobs(what, arrays, std::vector<bool>(8, true)));
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].jobs + batches[1].jobs, 64);
  EXPECT_EQ(batches[1].job[0].first, 0);
}

TEST(CudaJobs, EveryReductionHasItsKernel) {
  const auto name = [](DType dtype, const Op& op) {
    ExecutionSpec what = spec_of(Verb::all_reduce, 2, 1);
    what.dtype = dtype;
    what.op = op;
    return gpu_kernel(what).name;
  };
  EXPECT_EQ(name(DType::bfloat16, Op::mean), "tutti_sum_bfloat16");
  EXPECT_EQ(name(DType::int16, Op::sum), "tutti_sum_uint16");
  EXPECT_EQ(name(DType::int16, Op::min), "tutti_min_int16");
  EXPECT_EQ(name(DType::uint64, Op::max), "tutti_max_uint64");
  EXPECT_EQ(name(DType::int64, Op::bxor), "tutti_xor_bytes");
  EXPECT_EQ(name(DType::boolean, Op::sum), "tutti_or_bool");
  EXPECT_EQ(name(DType::boolean, Op::min), "tutti_and_bool");
  EXPECT_EQ(name(DType::complex64, Op::sum), "tutti_sum_float32");
  EXPECT_EQ(name(DType::complex128, Op::product), "tutti_product_complex128");
}

}  // namespace
}  // namespace tutti
