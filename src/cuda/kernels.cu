// kernels.cu: reductions, moves and strided copies on a GPU, and the door by which a kernel asks whether it may write.
// SPDX-License-Identifier: Apache-2.0
//
// One thread has one vector of 16 bytes at a time: enough threads are on their way for the memory to be busy. Nothing is fused
// (-fmad=false), and small floats are computed in float32 and rounded once, so that the bits are those of the kernels for the CPU.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "base/half.hpp"
#include "cuda/kernels.hpp"

namespace tutti::cuda {
namespace {

// Elements: how they lie in memory, and what they are computed in.
template <class T>
struct Plain {
  using Stored = T;
  using Computed = T;
  static __device__ Computed load(Stored v) { return v; }
  static __device__ Stored store(Computed v) { return v; }
};
struct Truth {
  using Stored = unsigned char;
  using Computed = unsigned char;
  static __device__ Computed load(Stored v) { return v != 0; }
  static __device__ Stored store(Computed v) { return v; }
};
struct Half {
  using Stored = unsigned short;
  using Computed = float;
  static __device__ Computed load(Stored v) { return __half2float(__ushort_as_half(v)); }
  static __device__ Stored store(Computed v) { return __half_as_ushort(__float2half_rn(v)); }
};
struct BHalf {
  using Stored = unsigned short;
  using Computed = float;
  static __device__ Computed load(Stored v) { return __uint_as_float(unsigned(v) << 16); }
  static __device__ Stored store(Computed v) { return __bfloat16_as_ushort(__float2bfloat16_rn(v)); }
};
template <class F>
struct Small {
  using Stored = typename F::Bits;
  using Computed = float;
  static __device__ Computed load(Stored v) { return half::decode<F>(v); }
  static __device__ Stored store(Computed v) { return half::encode<F>(v); }
};
template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T real, imaginary;
};

struct Sum {
  template <class T>
  static __device__ T combine(T a, T b) {
    return a + b;
  }
};
struct Product {
  template <class T>
  static __device__ T combine(T a, T b) {
    if constexpr (sizeof(T) < sizeof(unsigned) && !std::is_floating_point_v<T>) {
      return T(unsigned(a) * unsigned(b));  // 65535 × 65535 does not fit an int
    } else {
      return a * b;
    }
  }
  template <class T>
  static __device__ Pair<T> combine(Pair<T> a, Pair<T> b) {
    return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
  }
};
// NaN if either is; −0 is less than +0.
struct Min {
  template <class T>
  static __device__ T combine(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a || b != b) return a + b;
      if (a == b) return signbit(a) ? a : b;
    }
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  static __device__ T combine(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a || b != b) return a + b;
      if (a == b) return signbit(a) ? b : a;
    }
    return a > b ? a : b;
  }
};
struct And {
  template <class T>
  static __device__ T combine(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static __device__ T combine(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static __device__ T combine(T a, T b) {
    return a ^ b;
  }
};

constexpr int vector_bytes = 16;

template <class T, int n>
struct alignas(n * sizeof(T) == vector_bytes ? vector_bytes : alignof(T)) Vector {
  T at[n];
};

/// One job of a batch for vectors of n elements.
template <class E, class Op, int n>
struct Work {
  using Stored = typename E::Stored;
  using Computed = typename E::Computed;
  using Lanes = Vector<Stored, n>;
  struct Values {
    Computed at[n];
  };

  const Batch& batch;
  void* const* pointers;  // of the job
  int sources, destinations;

  __device__ Lanes source(int which, std::int64_t place) const {
    return static_cast<const Lanes*>(pointers[which])[place];
  }
  __device__ Values values(const Lanes& lanes) const {
    Values values;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      values.at[i] = E::load(lanes.at[i]);
      if constexpr (std::is_floating_point_v<Computed>) {
        if (batch.is_scaled) values.at[i] *= Computed(batch.factor);
      }
    }
    return values;
  }
  __device__ Lanes result(const Values& values) const {
    Lanes lanes;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      Computed value = values.at[i];
      if constexpr (std::is_floating_point_v<Computed>) {
        if (batch.is_divided) value = value / Computed(batch.divisor);
      }
      lanes.at[i] = E::store(value);
    }
    return lanes;
  }
  static __device__ void add(Values& sum, const Values& next) {
#pragma unroll
    for (int i = 0; i < n; ++i) sum.at[i] = Op::combine(sum.at[i], next.at[i]);
  }
  __device__ void write(int which, std::int64_t place, const Lanes& lanes) const {
    void* const to = pointers[sources + which];
    if (to != nullptr) static_cast<Lanes*>(to)[place] = lanes;
  }

  // All sources are read before anything is written: a destination may be one of them.
  __device__ void reduce(std::int64_t place) const {
    Values sum = values(source(0, place));
    int k = 1;
    for (; k + 3 < sources; k += 4) {
      const Lanes a = source(k, place), b = source(k + 1, place), c = source(k + 2, place), d = source(k + 3, place);
      add(sum, values(a));
      add(sum, values(b));
      add(sum, values(c));
      add(sum, values(d));
    }
    for (; k < sources; ++k) add(sum, values(source(k, place)));
    const Lanes lanes = result(sum);
    for (int to = 0; to < destinations; ++to) write(to, place, lanes);
  }
  __device__ Lanes identity() const {
    Lanes lanes;
#pragma unroll
    for (int i = 0; i < n; ++i) lanes.at[i] = *reinterpret_cast<const Stored*>(batch.identity);
    return lanes;
  }
  // The next source is read before the destination of its place is written.
  __device__ void scan(std::int64_t place) const {
    Values sum = values(source(0, place));
    const bool is_exclusive = batch.mode == Batch::before_own;
    write(0, place, is_exclusive ? identity() : result(sum));
    for (int k = 1; k < sources; ++k) {
      const Values next = values(source(k, place));
      const Values before = sum;
      add(sum, next);
      write(k, place, result(is_exclusive ? before : sum));
    }
  }
  __device__ void run(std::int64_t begin, std::int64_t end) const {
    const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
    for (std::int64_t i = begin + std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < end; i += step)
      batch.mode == Batch::everything ? reduce(i) : scan(i);
  }
};

template <class E, class Op>
__device__ void run(const Batch& batch) {
  if (batch.is_permitted != nullptr && *static_cast<const volatile unsigned*>(batch.is_permitted) == 0) return;
  constexpr int lanes = vector_bytes / int(sizeof(typename E::Stored));
  for (int j = 0; j < batch.jobs; ++j) {
    const Job& job = batch.job[j];
    void* const* const pointers = batch.pointer + job.first;
    const std::int64_t vectors = job.is_aligned ? job.count / lanes : 0;
    Work<E, Op, lanes>{batch, pointers, job.sources, job.destinations}.run(0, vectors);
    Work<E, Op, 1>{batch, pointers, job.sources, job.destinations}.run(vectors * lanes, job.count);
  }
}

/// Bytes as they are, of one source or none.
template <class T>
__device__ void move(const Job& job, void* const* pointers, std::int64_t begin, std::int64_t end) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  const T* const from = job.sources == 0 ? nullptr : static_cast<const T*>(pointers[0]);
  for (std::int64_t i = begin + std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < end; i += step) {
    const T value = from == nullptr ? T{} : from[i];
    for (int to = 0; to < job.destinations; ++to) static_cast<T*>(pointers[job.sources + to])[i] = value;
  }
}

template <class T>
__device__ void move_strided(const StridedMove& m) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < m.count; i += step) {
    std::int64_t rest = i, to = 0, from = 0;
    for (int axis = m.axes - 1; axis >= 0; --axis) {
      const std::int64_t extent = m.extent[axis];
      std::int64_t at;
      if (rest < (std::int64_t(1) << 31) && extent < (std::int64_t(1) << 31)) {  // several times quicker
        const auto quotient = unsigned(rest) / unsigned(extent);
        at = unsigned(rest) - quotient * unsigned(extent);
        rest = quotient;
      } else {
        at = rest % extent;
        rest /= extent;
      }
      to += at * m.to_stride[axis];
      from += at * m.from_stride[axis];
    }
    *reinterpret_cast<T*>(m.to + to) = *reinterpret_cast<const T*>(m.from + from);
  }
}

}  // namespace

#define TUTTI_REDUCTION(name, element, op)                                                              \
  extern "C" __global__ void __launch_bounds__(256) tutti_##name(const __grid_constant__ Batch batch) { \
    run<element, op>(batch);                                                                            \
  }
#define TUTTI_FLOATS(type, element)                 \
  TUTTI_REDUCTION(sum_##type, element, Sum)         \
  TUTTI_REDUCTION(product_##type, element, Product) \
  TUTTI_REDUCTION(min_##type, element, Min)         \
  TUTTI_REDUCTION(max_##type, element, Max)
#define TUTTI_INTEGERS(bits, type)                                   \
  TUTTI_REDUCTION(sum_uint##bits, Plain<unsigned type>, Sum)         \
  TUTTI_REDUCTION(product_uint##bits, Plain<unsigned type>, Product) \
  TUTTI_REDUCTION(min_uint##bits, Plain<unsigned type>, Min)         \
  TUTTI_REDUCTION(max_uint##bits, Plain<unsigned type>, Max)         \
  TUTTI_REDUCTION(min_int##bits, Plain<signed type>, Min)            \
  TUTTI_REDUCTION(max_int##bits, Plain<signed type>, Max)

TUTTI_FLOATS(float16, Half)
TUTTI_FLOATS(bfloat16, BHalf)
TUTTI_FLOATS(float32, Plain<float>)
TUTTI_FLOATS(float64, Plain<double>)
TUTTI_FLOATS(float8_e4m3, Small<half::Float8E4M3>)
TUTTI_FLOATS(float8_e5m2, Small<half::Float8E5M2>)
TUTTI_INTEGERS(8, char)
TUTTI_INTEGERS(16, short)
TUTTI_INTEGERS(32, int)
TUTTI_INTEGERS(64, long long)
TUTTI_REDUCTION(product_complex64, Plain<Pair<float>>, Product)
TUTTI_REDUCTION(product_complex128, Plain<Pair<double>>, Product)
TUTTI_REDUCTION(and_bytes, Plain<unsigned char>, And)
TUTTI_REDUCTION(or_bytes, Plain<unsigned char>, Or)
TUTTI_REDUCTION(xor_bytes, Plain<unsigned char>, Xor)
TUTTI_REDUCTION(and_bool, Truth, And)
TUTTI_REDUCTION(or_bool, Truth, Or)
TUTTI_REDUCTION(xor_bool, Truth, Xor)

/// The counts are bytes.
extern "C" __global__ void __launch_bounds__(256) tutti_move(const __grid_constant__ Batch batch) {
  if (batch.is_permitted != nullptr && *static_cast<const volatile unsigned*>(batch.is_permitted) == 0) return;
  for (int j = 0; j < batch.jobs; ++j) {
    const Job& job = batch.job[j];
    void* const* const pointers = batch.pointer + job.first;
    const std::int64_t vectors = job.is_aligned ? job.count / vector_bytes : 0;
    move<uint4>(job, pointers, 0, vectors);
    move<unsigned char>(job, pointers, vectors * vector_bytes, job.count);
  }
}

extern "C" __global__ void __launch_bounds__(256) tutti_move_strided(const __grid_constant__ StridedMove m) {
  switch (m.unit) {
    case 16: return move_strided<uint4>(m);
    case 8: return move_strided<unsigned long long>(m);
    case 4: return move_strided<unsigned>(m);
    case 2: return move_strided<unsigned short>(m);
    default: return move_strided<unsigned char>(m);
  }
}

/// One thread. First `busy` is said, then `revoked` is looked at; who revokes does it the other way round, so that one of the two sees
/// the other.
extern "C" __global__ void tutti_enter(const __grid_constant__ Entrance e) {
  for (int i = 0; i < e.mailboxes; ++i) *static_cast<volatile std::uint64_t*>(&e.mailbox[i]->busy) = e.ticket;
  __threadfence_system();
  bool is_permitted = true;
  for (int i = 0; i < e.mailboxes; ++i) {
    if (*static_cast<volatile std::uint64_t*>(&e.mailbox[i]->revoked) >= e.ticket) is_permitted = false;
  }
  *e.is_permitted = is_permitted ? 1 : 0;
  __threadfence_system();
}

extern "C" __global__ void tutti_leave(const __grid_constant__ Entrance e) {
  __threadfence_system();
  for (int i = 0; i < e.mailboxes; ++i) *static_cast<volatile std::uint64_t*>(&e.mailbox[i]->busy) = 0;
  __threadfence_system();
}

}  // namespace tutti::cuda
