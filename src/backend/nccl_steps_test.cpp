// nccl_steps_test.cpp: which calls NCCL serves, and that its steps, carried out here on integers, give what the verbs promise.
// SPDX-License-Identifier: Apache-2.0
#include "backend/nccl_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>

namespace tutti {
namespace {

using Kind = NcclStep::Kind;
using Values = std::vector<int>;
using testing::HasSubstr;

constexpr std::array<std::int64_t, 1> shape{4};
alignas(16) std::array<std::byte, 256> memory{};

Request request_of(Verb verb, DType dtype, Op op = Op::sum) {
  const View view(memory.data(), dtype, shape, Device{.kind = Device::Kind::cuda});
  return {.verb = verb, .input = view, .output = view, .op = op};
}

std::string refusal(Verb verb, DType dtype, Op op = Op::sum, int size = 4) {
  return nccl_refusal(request_of(verb, dtype, op), size).value_or("");
}

TEST(NcclSteps, WhatMovesIsServedWhateverItIs) {
  for (const Verb verb :
       {Verb::broadcast, Verb::all_gather, Verb::gather, Verb::scatter, Verb::all_to_all, Verb::permute}) {
    for (const DType dtype : {DType::boolean, DType::int16, DType::complex128, DType::float8_e4m3, struct_of(24)})
      EXPECT_EQ(refusal(verb, dtype), "") << name_of(verb) << " " << name_of(dtype);
  }
}

TEST(NcclSteps, WhatNcclHasNotIsRefusedWithTheReason) {
  EXPECT_THAT(refusal(Verb::scan, DType::float32), HasSubstr("no prefix reductions"));
  EXPECT_THAT(refusal(Verb::exscan, DType::float32), HasSubstr("no prefix reductions"));
  EXPECT_THAT(refusal(Verb::all_reduce, DType::int16), HasSubstr("no reductions of int16"));
  EXPECT_THAT(refusal(Verb::reduce, DType::float8_e5m2), HasSubstr("no reductions of float8_e5m2"));
  EXPECT_THAT(refusal(Verb::all_reduce, DType::int32, Op::bxor), HasSubstr("no bxor of int32"));
  EXPECT_THAT(refusal(Verb::all_reduce, DType::boolean, Op::bxor), HasSubstr("no bxor of bool"));
  EXPECT_THAT(refusal(Verb::all_reduce, DType::complex64, Op::product), HasSubstr("no product of complex64"));
  EXPECT_THAT(refusal(Verb::all_reduce, DType::float32, Op(Op::Own{.dtype = DType::float32})),
              HasSubstr("functions of the program's own"));
  Request uneven = request_of(Verb::all_to_all, DType::float32);
  uneven.sizes = {1, 1, 1, 1};
  EXPECT_THAT(nccl_refusal(uneven, 4).value_or(""), HasSubstr("does not exchange sizes"));
  Request following = request_of(Verb::broadcast, DType::float32);
  following.sizes_follow = true;
  EXPECT_THAT(nccl_refusal(following, 4).value_or(""), HasSubstr("does not exchange sizes"));
}

TEST(NcclSteps, WhatNcclWouldComputeOtherwiseIsRefused) {
  EXPECT_THAT(refusal(Verb::all_reduce, DType::float32, Op::min), HasSubstr("NaN"));
  EXPECT_THAT(refusal(Verb::all_reduce, DType::bfloat16), HasSubstr("rounds bfloat16 after each addition"));
  EXPECT_THAT(refusal(Verb::all_reduce, DType::float16, Op::mean, 2), HasSubstr("rounds float16"));
  EXPECT_EQ(refusal(Verb::all_reduce, DType::bfloat16, Op::sum, 2), "");  // there is one addition
}

TEST(NcclSteps, ReductionsHaveNcclsNumbers) {
  struct Row {
    DType dtype;
    Op op;
    nccl::DataType type;
    nccl::Reduction reduction;
    std::int64_t per_element = 1;
    bool is_scaled = false;
  };
  const Row rows[] = {
      {DType::boolean, Op::sum, nccl::DataType::uint8, nccl::max},
      {DType::boolean, Op::bor, nccl::DataType::uint8, nccl::max},
      {DType::boolean, Op::band, nccl::DataType::uint8, nccl::min},
      {DType::int8, Op::sum, nccl::DataType::int8, nccl::sum},
      {DType::uint8, Op::max, nccl::DataType::uint8, nccl::max},
      {DType::int32, Op::min, nccl::DataType::int32, nccl::min},
      {DType::uint32, Op::product, nccl::DataType::uint32, nccl::product},
      {DType::int64, Op::sum, nccl::DataType::int64, nccl::sum},
      {DType::uint64, Op::sum, nccl::DataType::uint64, nccl::sum},
      {DType::float16, Op::sum, nccl::DataType::float16, nccl::sum},
      {DType::bfloat16, Op::sum, nccl::DataType::bfloat16, nccl::sum},
      {DType::float32, Op::mean, nccl::DataType::float32, nccl::average},
      {DType::float64, Op::premul(0.5), nccl::DataType::float64, nccl::sum, 1, true},
      {DType::complex64, Op::sum, nccl::DataType::float32, nccl::sum, 2},
      {DType::complex128, Op::mean, nccl::DataType::float64, nccl::average, 2},
  };
  for (const auto& [dtype, op, type, reduction, per_element, is_scaled] : rows) {
    EXPECT_EQ(refusal(Verb::all_reduce, dtype, op, 2), "") << name_of(dtype);
    ExecutionSpec what{.dtype = dtype, .op = op};
    what.spec.verb = Verb::all_reduce;
    const NcclElement element = nccl_element(what);
    EXPECT_EQ(element.type, type) << name_of(dtype);
    EXPECT_EQ(element.reduction, reduction) << name_of(dtype);
    EXPECT_EQ(element.per_element, per_element) << name_of(dtype);
    EXPECT_EQ(element.is_scaled, is_scaled) << name_of(dtype);
    EXPECT_EQ(static_cast<std::size_t>(per_element) * (type == nccl::DataType::float64   ? 8
                                                       : type == nccl::DataType::float32 ? 4
                                                                                         : size_of(dtype)),
              size_of(dtype));
  }
}

/// The steps of all ranks, carried out together: what every rank's output is. Rank r's input is 100 (r + 1) + i.
class World {
 public:
  World(ExecutionSpec what, int size, std::size_t in, std::size_t out) : what_(std::move(what)) {
    for (int rank = 0; rank < size; ++rank) {
      inputs_.emplace_back(in);
      std::iota(inputs_.back().begin(), inputs_.back().end(), 100 * (rank + 1));
      outputs_.emplace_back(out, -1);
      what_.spec.rank = rank;
      steps_.push_back(nccl_steps(what_));
    }
  }

  std::vector<Values> outputs() {
    for (int rank = 0; rank < size(); ++rank) {
      // A collective of NCCL's is the same step on all ranks, in the same order; messages of a pair are matched in order.
      std::size_t number = 0;
      for (const NcclStep& step : steps_of(rank)) carry_out(rank, step, number++);
    }
    return outputs_;
  }

 private:
  [[nodiscard]] int size() const { return static_cast<int>(inputs_.size()); }
  [[nodiscard]] const std::vector<NcclStep>& steps_of(int rank) const { return steps_[static_cast<std::size_t>(rank)]; }
  Values& in(int rank) { return inputs_[static_cast<std::size_t>(rank)]; }
  int& out(int rank, std::int64_t at) {
    return outputs_[static_cast<std::size_t>(rank)].at(static_cast<std::size_t>(at));
  }
  int sum(std::int64_t at) {
    int sum = 0;
    for (int rank = 0; rank < size(); ++rank) sum += in(rank).at(static_cast<std::size_t>(at));
    return sum;
  }
  /// The message that this receive is for.
  const NcclStep& sent(int from, int to, std::size_t before) {
    std::size_t place = 0;
    for (const NcclStep& step : steps_of(to)) {
      if (before-- == 0) break;
      if (step.kind == Kind::recv && step.peer == from) ++place;
    }
    for (const NcclStep& step : steps_of(from)) {
      if (step.kind == Kind::send && step.peer == to && place-- == 0) return step;
    }
    throw std::logic_error("nobody sends that");
  }
  void carry_out(int rank, const NcclStep& step, std::size_t number) {
    for (std::int64_t i = 0; i < step.count; ++i) {
      const auto at = [&](const Values& values, std::int64_t place) {
        return values.at(static_cast<std::size_t>(place));
      };
      switch (step.kind) {
        case Kind::all_reduce: out(rank, step.to + i) = sum(step.from + i); break;
        case Kind::reduce:
          if (rank == step.peer) out(rank, step.to + i) = sum(step.from + i);
          break;
        case Kind::reduce_scatter: out(rank, i) = sum(rank * step.count + i); break;
        case Kind::broadcast: out(rank, step.to + i) = at(in(step.peer), i); break;
        case Kind::all_gather:
          for (int peer = 0; peer < size(); ++peer) out(rank, peer * step.count + i) = at(in(peer), i);
          break;
        case Kind::recv: {
          const NcclStep& message = sent(step.peer, rank, number);
          EXPECT_EQ(message.count, step.count);
          out(rank, step.to + i) = at(in(step.peer), message.from + i);
          break;
        }
        case Kind::send: break;
        case Kind::copy: out(rank, step.to + i) = at(in(rank), step.from + i); break;
        case Kind::zero: out(rank, step.to + i) = 0; break;
      }
    }
  }

  ExecutionSpec what_;
  std::vector<Values> inputs_, outputs_;
  std::vector<std::vector<NcclStep>> steps_;
};

ExecutionSpec spec_of(Verb verb, std::int64_t count, std::vector<std::int64_t> counts = {}) {
  ExecutionSpec what;
  what.spec.verb = verb;
  what.spec.size = 3;
  what.spec.root = 2;
  what.spec.count = count;
  what.spec.counts = std::move(counts);
  what.dtype = DType::int32;
  return what;
}

TEST(NcclSteps, WholeArrays) {
  EXPECT_EQ(World(spec_of(Verb::all_reduce, 2), 3, 2, 2).outputs(), (std::vector<Values>(3, {600, 603})));
  EXPECT_EQ(World(spec_of(Verb::reduce, 1), 3, 1, 1).outputs(), (std::vector<Values>{{-1}, {-1}, {600}}));
  EXPECT_EQ(World(spec_of(Verb::broadcast, 2), 3, 2, 2).outputs(), (std::vector<Values>(3, {300, 301})));
}

TEST(NcclSteps, EvenBlocks) {
  EXPECT_EQ(World(spec_of(Verb::all_gather, 2), 3, 2, 6).outputs(),
            (std::vector<Values>(3, {100, 101, 200, 201, 300, 301})));
  EXPECT_EQ(World(spec_of(Verb::gather, 1), 3, 1, 3).outputs(),
            (std::vector<Values>{{-1, -1, -1}, {-1, -1, -1}, {100, 200, 300}}));
  EXPECT_EQ(World(spec_of(Verb::scatter, 2), 3, 6, 2).outputs(),
            (std::vector<Values>{{300, 301}, {302, 303}, {304, 305}}));
  EXPECT_EQ(World(spec_of(Verb::reduce_scatter, 1), 3, 3, 1).outputs(), (std::vector<Values>{{600}, {603}, {606}}));
  EXPECT_EQ(World(spec_of(Verb::all_to_all, 1), 3, 3, 3).outputs(),
            (std::vector<Values>{{100, 200, 300}, {101, 201, 301}, {102, 202, 302}}));
}

TEST(NcclSteps, UnevenBlocks) {
  const std::vector<std::int64_t> counts{2, 0, 1};
  EXPECT_EQ(World(spec_of(Verb::all_gather, 0, counts), 3, 2, 3).outputs(), (std::vector<Values>(3, {100, 101, 300})));
  EXPECT_EQ(World(spec_of(Verb::gather, 0, counts), 3, 2, 3).outputs()[2], (Values{100, 101, 300}));
  EXPECT_EQ(World(spec_of(Verb::scatter, 0, counts), 3, 3, 2).outputs(),
            (std::vector<Values>{{300, 301}, {-1, -1}, {302, -1}}));
  EXPECT_EQ(World(spec_of(Verb::reduce_scatter, 0, counts), 3, 3, 2).outputs(),
            (std::vector<Values>{{600, 603}, {-1, -1}, {606, -1}}));
}

TEST(NcclSteps, APermutationFillsWithZerosWhereNothingComes) {
  ExecutionSpec what = spec_of(Verb::permute, 1);
  what.spec.pairs = {{0, 2}, {1, 1}};
  EXPECT_EQ(World(what, 3, 1, 1).outputs(), (std::vector<Values>{{0}, {200}, {100}}));
}

TEST(NcclSteps, NothingIsDoneForNoElements) {
  for (const Verb verb : {Verb::all_reduce, Verb::all_gather, Verb::scatter, Verb::all_to_all})
    EXPECT_TRUE(nccl_steps(spec_of(verb, 0)).empty()) << name_of(verb);
}

}  // namespace
}  // namespace tutti
