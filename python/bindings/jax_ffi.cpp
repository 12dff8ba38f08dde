// jax_ffi.cpp: calls from compiled JAX programs: the one handler behind tutti.jax's primitive.
// SPDX-License-Identifier: Apache-2.0
//
// XLA calls the handler from threads of its pool, in the order of the token that ties a program's calls together. The
// pool has few threads, and the rest of the program can use them: a handler must not hold one until other ranks have
// arrived. It waits for a moment, which is enough for most calls and the fastest way then; what is not over by then is
// waited for elsewhere, and XLA is told through a future.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <system_error>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <tutti/error.hpp>

#include "bindings/gil.hpp"
#include "bindings/jax_errors.hpp"
#include "bindings/running.hpp"
#include "group/core.hpp"
#include "group/operation.hpp"
#include "group/runtime.hpp"

namespace tutti::python {
namespace {

namespace ffi = xla::ffi;

constexpr Duration spin_budget = std::chrono::milliseconds(2);

/// XLA's threads flush denormal numbers to zero. Ours do not, and a result must not depend on the thread that adds.
class ExactArithmetic {
 public:
#if defined(__x86_64__)
  ExactArithmetic() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ & ~(flush_results | flush_inputs)); }
  ~ExactArithmetic() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  ExactArithmetic() : saved_(__builtin_aarch64_get_fpcr64()) { __builtin_aarch64_set_fpcr64(saved_ & ~flush_both); }
  ~ExactArithmetic() { __builtin_aarch64_set_fpcr64(saved_); }
#else
  ExactArithmetic() = default;
#endif
  ExactArithmetic(const ExactArithmetic&) = delete;
  ExactArithmetic& operator=(const ExactArithmetic&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned flush_results = 0x8000, flush_inputs = 0x0040;
  unsigned saved_;
#elif defined(__aarch64__)
  static constexpr std::uint64_t flush_both = std::uint64_t{1} << 24;
  std::uint64_t saved_;
#endif
};

DType dtype_of_xla(ffi::DataType type) {
  switch (type) {
    case ffi::PRED: return DType::boolean;
    case ffi::S8: return DType::int8;
    case ffi::S16: return DType::int16;
    case ffi::S32: return DType::int32;
    case ffi::S64: return DType::int64;
    case ffi::U8: return DType::uint8;
    case ffi::U16: return DType::uint16;
    case ffi::U32: return DType::uint32;
    case ffi::U64: return DType::uint64;
    case ffi::F16: return DType::float16;
    case ffi::BF16: return DType::bfloat16;
    case ffi::F32: return DType::float32;
    case ffi::F64: return DType::float64;
    case ffi::C64: return DType::complex64;
    case ffi::C128: return DType::complex128;
    case ffi::F8E4M3FN: return DType::float8_e4m3;
    case ffi::F8E5M2: return DType::float8_e5m2;
    default: break;
  }
  throw Unsupported("elements of this type cannot be sent; convert them first, for example to float32 or int8");
}

void tell(const Started& started, ffi::Promise promise) {
  try {
    started.rethrow();
  } catch (...) {
    return promise.SetError(error_for_xla(std::current_exception()));
  }
  note_success();
  promise.SetAvailable();
}

/// Waits, at most to `limit`; true: it has ended.
bool await(const Started& started, TimePoint limit) {
  if (started.operations.empty()) return true;
  return started.member->core().runtime().drive([&] { return started.ended(); }, limit);
}

/// Waits in a thread of its own, which costs little beside a call that takes this long. XLA goes on with the program in
/// the thread that tells it, and may come back with the next call: nobody else's thread will do, and that of the
/// runtime least. XLA keeps the arrays until it is told.
void tell_when_ended(Started started, const ffi::Promise& promise) {
  const auto shared = std::make_shared<Started>(std::move(started));
  const auto finish = [shared, promise] {
    {
      const ExactArithmetic exact;
      await(*shared, TimePoint::max());  // it ends by its own deadline
    }
    tell(*shared, promise);
  };
  try {
    std::thread(finish).detach();
  } catch (const std::system_error&) {
    finish();  // no threads left: better to hold XLA's than to give up its arrays while they are in use
  }
}

/// What a rank has no part in is not shown to the core: off the root, what broadcast and scatter are given is not read.
Terms terms_of(const Call& call, int rank, const ffi::AnyBuffer& x, ffi::AnyBuffer& y) {
  if (call.verb == Verb::barrier) return {};
  const auto in = x.dimensions(), out = y.dimensions();
  const DType dtype = dtype_of_xla(x.element_type());
  Terms terms{.input = View::read_only(x.untyped_data(), dtype, std::span(in.begin(), in.size())),
              .output = View(y.untyped_data(), dtype, std::span(out.begin(), out.size()))};
  if (root_gives(call.verb) && rank != call.root) terms.input = View();
  return terms;
}

struct Attributes {
  std::string_view call;
  std::int64_t group;
  double timeout;
  bool differentiated;
};

/// Begins the call, and waits for a moment.
Started begin(const Attributes& attributes, const ffi::AnyBuffer& x, ffi::AnyBuffer& y) {
  const ExactArithmetic exact;
  const auto member = group_of(attributes.group);
  const Call call = parallel::decode_call(attributes.call);
  Terms terms = terms_of(call, member->rank(), x, y);
  terms.differentiated = attributes.differentiated;
  terms.timeout = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(attributes.timeout));
  Runtime& runtime = member->core().runtime();
  runtime.check_alive();
  Started started = run_within_spin_budget(member, call, terms);
  await(started, deadline_after(runtime.clock().now(), spin_budget));
  return started;
}

ffi::Future run(ffi::AnyBuffer x, ffi::Token, ffi::Result<ffi::AnyBuffer> y, ffi::Result<ffi::Token>,
                std::string_view call, std::int64_t group, double timeout, bool differentiated) {
  ffi::Promise promise;
  ffi::Future future(promise);
  try {
    Started started =
        begin({.call = call, .group = group, .timeout = timeout, .differentiated = differentiated}, x, *y);
    if (started.ended()) {
      tell(started, promise);
    } else {
      tell_when_ended(std::move(started), promise);
    }
  } catch (...) {
    promise.SetError(error_for_xla(std::current_exception()));
  }
  return future;
}

XLA_FFI_DEFINE_HANDLER(handler, run,
                       ffi::Ffi::Bind()
                           .Arg<ffi::AnyBuffer>()
                           .Arg<ffi::Token>()
                           .Ret<ffi::AnyBuffer>()
                           .Ret<ffi::Token>()
                           .Attr<std::string_view>("call")
                           .Attr<std::int64_t>("group")
                           .Attr<double>("timeout")
                           .Attr<bool>("differentiated"));

nb::dict handlers() {
  nb::dict all;
  all["tutti_run"] = nb::capsule(reinterpret_cast<void*>(handler), "xla._CUSTOM_CALL_TARGET");
  return all;
}

/// What a program will run its calls on: the group's twin, and where the call needs it the twin's mirror image, so that
/// no handler has to make a group. Collective where they are new.
std::int64_t prepare(const std::shared_ptr<Member>& member, const Call& call) {
  const WithoutGil release;
  const auto duplicate = member->duplicate();
  if (call.reverse) (void)duplicate->reversed();
  return duplicate->id();
}

}  // namespace

void bind_jax(nb::module_& m) {
  m.def("jax_handlers", handlers, "XLA's handlers by the names that programs call them by.");
  m.def("jax_prepare", prepare, nb::arg("group"), nb::arg("call"),
        "The number under which a compiled program finds its group.");
  m.def("jax_rethrow", rethrow_if_ours, nb::arg("said"),
        "Raises the error that XLA's text tells of, if it is one of ours.");
  m.def("jax_unseen_failure", take_unseen_failure,
        "What the latest call of a program said, if it failed and nobody was told; once.");
}

}  // namespace tutti::python
