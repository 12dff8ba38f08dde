// kernel.hpp: arithmetic and movement of elements in memory, for every dtype; the vector width is chosen at run time.
// SPDX-License-Identifier: Apache-2.0
//
// Rules for all functions:
//   1. pointers may have any alignment; counts are elements, and 0 is fine with null pointers;
//   2. `to` may be exactly one of the inputs; any other overlap is the caller's mistake;
//   3. the bits do not depend on the vector width (nothing is fused or reordered), save for the payload of a NaN;
//   4. float16, bfloat16 and float8 are computed in float32 and rounded once, to nearest even;
//   5. what makes no sense (see applies()) and negative counts throw InvalidArgument before anything is written.
// Cost: memory bandwidth. reduce reads 2 and writes 1 element for each result, reduce_many reads n and writes 1; within
// the first cache a vector is done in a few cycles (small floats: some ten more for decoding and rounding).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tutti/dtype.hpp>
#include <tutti/op.hpp>
#include <tutti/view.hpp>

namespace tutti::kernel {

/// to[i] = a[i] ⊕ b[i]. mean and premul add; divide and scale do the rest. Integers wrap around. min and max give NaN
/// if either side is NaN, and take −0 for less than +0. Any byte but 0 is true; bools come out as 0 or 1, and sum and
/// product of them are "or" and "and". A function of the program's own brings its own loop.
void reduce(const Op& op, DType dtype, void* to, const void* a, const void* b, std::int64_t count);

/// to[i] = (inputs[0][i] ⊕ inputs[1][i]) ⊕ …, in that order. Small floats stay in float32 until the end, so the result
/// can differ from repeated calls of reduce.
void reduce_many(const Op& op, DType dtype, void* to, std::span<const void* const> inputs, std::int64_t count);

/// to[i] = from[i] × factor; floating-point and complex only. The factor is first rounded to the type that computes:
/// float64 for float64 and complex128, float32 for all others.
void scale(DType dtype, void* to, const void* from, double factor, std::int64_t count);

/// to[i] = from[i] ÷ divisor, truly divided: the mean of n equal values is that value.
void divide(DType dtype, void* to, const void* from, double divisor, std::int64_t count);

/// Between any two real floating-point types, rounded once; the same type is a copy. No overlap otherwise.
void cast(DType to_type, void* to, DType from_type, const void* from, std::int64_t count);

/// The identity: 0 for sum, 1 for product, the largest value for min (infinity, or 448 in
/// float8_e4m3), the lowest for max, all ones for band. Of a function of the program's own it is not known: zero bytes.
void fill_identity(const Op& op, DType dtype, void* to, std::int64_t count);
void fill_zero(DType dtype, void* to, std::int64_t count);

/// Elements of a view in row-major order into contiguous memory, and back. Axes that lie together are moved together,
/// so that runs are copied whole. Reading through strides of 0 repeats elements; writing through them is refused.
void pack(const View& from, void* to);
void unpack(const void* from, const View& to);
/// Between two views of the same shape and dtype that do not overlap.
void copy(const View& to, const View& from);

}  // namespace tutti::kernel
