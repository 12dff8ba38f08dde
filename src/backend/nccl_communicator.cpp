// nccl_communicator.cpp: a communicator of NCCL's.
// SPDX-License-Identifier: Apache-2.0
#include "backend/nccl_communicator.hpp"

#include <fmt/format.h>

#include <utility>

#include <tutti/error.hpp>

#include "base/hash.hpp"

namespace tutti {
namespace {

/// Copies within this rank need no NCCL.
void move_own(const NcclStep& step, const std::byte* from, std::byte* to, std::size_t bytes, cuda::Stream stream) {
  const cuda::Driver& d = cuda::driver();
  if (step.kind == NcclStep::Kind::zero) {
    cuda::check(d.fill(reinterpret_cast<cuda::Address>(to), 0, bytes, stream), "cuMemsetD8Async");
  } else if (from != to) {
    cuda::check(d.copy(reinterpret_cast<cuda::Address>(to), reinterpret_cast<cuda::Address>(from), bytes, stream),
                "cuMemcpyAsync");
  }
}

bool is_own(const NcclStep& step) { return step.kind == NcclStep::Kind::copy || step.kind == NcclStep::Kind::zero; }

}  // namespace

NcclCommunicator::NcclCommunicator(const nccl::Functions& functions, const GroupFacts& facts, const nccl::UniqueId& id)
    : functions_(functions),
      facts_(facts),
      number_(Hash().add(std::string_view(id.bytes.data(), id.bytes.size())).value() | 1) {
  nccl::Config config{.blocking = 0};
  try {
    check(functions.init(&handle_, facts.size, id, facts.rank, &config), "ncclCommInitRankConfig");
  } catch (...) {
    abort();
    throw;
  }
}

bool NcclCommunicator::has_answered() {
  nccl::Result result = nccl::success;
  check(functions_.async_error(handle_, &result), "ncclCommGetAsyncError");
  check(result, "a call that is under way");
  return result == nccl::success;
}

void NcclCommunicator::ask(const ExecutionSpec& what, const std::vector<NcclStep>& steps, const Arrays& arrays,
                           cuda::Stream stream) {
  const NcclElement element = nccl_element(what);
  const auto bytes = static_cast<std::int64_t>(size_of(what.dtype));
  const nccl::Reduction reduction = make_reduction(element, what.op.factor());
  nccl::Result failed = nccl::success;
  check(functions_.group_start(), "ncclGroupStart");
  for (const NcclStep& step : steps) {
    const std::byte* const from = arrays.input == nullptr ? nullptr : arrays.input + step.from * bytes;
    std::byte* const to = arrays.output == nullptr ? nullptr : arrays.output + step.to * bytes;
    if (is_own(step)) {
      move_own(step, from, to, static_cast<std::size_t>(step.count * bytes), stream);
      continue;
    }
    const nccl::Result result = ask_for(step, {element.type, reduction, element.per_element, from, to, stream});
    if (result != nccl::success && result != nccl::in_progress) failed = result;
  }
  const nccl::Result ended = functions_.group_end();
  if (element.is_scaled) static_cast<void>(functions_.destroy_reduction(reduction, handle_));
  check(failed, name_of(what.spec.verb));
  check(ended, name_of(what.spec.verb));
}

nccl::Result NcclCommunicator::ask_for(const NcclStep& step, const Where& where) const {
  using Kind = NcclStep::Kind;
  const nccl::Functions& f = functions_;
  const auto& [type, reduction, per_element, from, to, stream] = where;
  const auto count = static_cast<std::size_t>(step.count * per_element);
  switch (step.kind) {
    case Kind::all_reduce: return f.all_reduce(from, to, count, type, reduction, handle_, stream);
    case Kind::reduce:
      return f.reduce(from, step.peer == facts_.rank ? to : nullptr, count, type, reduction, step.peer, handle_,
                      stream);
    case Kind::reduce_scatter: return f.reduce_scatter(from, to, count, type, reduction, handle_, stream);
    case Kind::broadcast: return f.broadcast(from, to, count, type, step.peer, handle_, stream);
    case Kind::all_gather: return f.all_gather(from, to, count, type, handle_, stream);
    case Kind::send: return f.send(from, count, type, step.peer, handle_, stream);
    case Kind::recv: return f.recv(to, count, type, step.peer, handle_, stream);
    case Kind::copy:
    case Kind::zero: break;
  }
  return nccl::success;
}

nccl::Reduction NcclCommunicator::make_reduction(const NcclElement& element, double factor) {
  if (!element.is_scaled) return element.reduction;
  auto single = static_cast<float>(factor);
  void* const scalar = element.type == nccl::DataType::float64 ? static_cast<void*>(&factor) : &single;
  nccl::Reduction reduction = nccl::sum;
  check(functions_.premul_sum(&reduction, scalar, element.type, nccl::scalar_on_host, handle_),
        "ncclRedOpCreatePreMulSum");
  return reduction;
}

void NcclCommunicator::check(nccl::Result result, std::string_view what) {
  if (result == nccl::success || result == nccl::in_progress) return;
  const std::string text = fmt::format("NCCL: {}: {}; the backend cuda (TUTTI_BACKEND=cuda) does without NCCL", what,
                                       nccl::describe(functions_, result, handle_));
  if (facts_.size > 1 && nccl::may_be_a_peer(result)) throw CommunicationFailed(text);
  throw Error(text);
}

void NcclCommunicator::abort() {
  if (nccl::Communicator const handle = std::exchange(handle_, nullptr); handle != nullptr)
    static_cast<void>(functions_.abort(handle));
}

}  // namespace tutti
