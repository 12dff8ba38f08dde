// nccl_call.cpp: a call on arrays of GPUs by NCCL.
// SPDX-License-Identifier: Apache-2.0
#include "backend/nccl_call.hpp"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include <tutti/error.hpp>

#include "backend/cuda_jobs.hpp"
#include "backend/lowering.hpp"
#include "backend/relocate.hpp"
#include "base/environment.hpp"

namespace tutti {
namespace {

/// By which NCCL tells hosts apart.
const std::string& host_id() {
  static const std::string id = Environment::of_process().get("NCCL_HOSTID").value_or("");
  return id;
}

struct HostPhase {
  Verb verb;
  std::int64_t bytes;
  std::uint32_t number;
};

std::unique_ptr<PreparedCall> prepare_phase(NcclGroup& group, const Request& request, const HostPhase& phase) {
  ExecutionSpec what;
  what.spec.verb = phase.verb;
  what.spec.rank = group.facts->rank;
  what.spec.size = group.facts->size;
  what.spec.count = phase.bytes;
  what.spec.in_place = phase.verb == Verb::broadcast;
  what.spec.node_of = group.facts->node_of;
  what.signature = request.signature;
  what.phase = phase.number;
  return group.executor->prepare(what);
}

}  // namespace

NcclCall::NcclCall(NcclGroup& group, const Request& request)
    : group_(group),
      device_(cuda::Device::get(device_of(request))),
      request_(request),
      packing_(request, *group.facts),
      work_(device_) {
  request_.allocate = nullptr;
  what_.dtype = (request.input.present() ? request.input : request.output).dtype();
  lower(request, packing_.layout(), facts(), what_);
  steps_ = nccl_steps(what_);
  exchange_ = prepare_phase(group, request, {Verb::all_gather, sizeof(NcclRecord), agree_phase});
  naming_ = prepare_phase(group, request, {Verb::broadcast, sizeof(nccl::UniqueId), data_phase});
  end_ = prepare_phase(group, request, {Verb::barrier, 0, end_phase});
  records_.resize(static_cast<std::size_t>(facts().size));
}

bool NcclCall::start(const Buffers& buffers, const Signature& signature) {
  arrays_ = buffers;
  signature_ = signature;
  if (request_.input.present()) request_.input = relocate(request_.input, buffers.input);
  if (request_.output.present()) request_.output = relocate(request_.output, buffers.output);
  if (group_.objection) return start_by_cuda();
  ++group_.running;
  stage_ = Stage::agreeing;
  own_ = own_nccl_record(nccl::find(), device_.uuid(), host_id());
  const auto known = group_.communicators.find(device_.index());
  if (known != group_.communicators.end()) own_.communicator = known->second->number();
  start_phase(
      *exchange_,
      {.input = reinterpret_cast<const std::byte*>(&own_), .output = reinterpret_cast<std::byte*>(records_.data())},
      Stage::agreeing);
  return poll();
}

bool NcclCall::start_by_cuda() {
  stage_ = Stage::by_cuda;
  if (by_cuda_ == nullptr) by_cuda_ = group_.cuda->prepare(request_);
  if (!by_cuda_->start(arrays_, signature_)) return false;
  stage_ = Stage::idle;
  return true;
}

void NcclCall::start_phase(PreparedCall& phase, const Buffers& buffers, Stage stage) {
  stage_ = stage;
  phase_ = &phase;
  if (!phase.start(buffers, signature_)) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  phase.wake_peers();
  phase_ = nullptr;
}

bool NcclCall::phase_is_over() {
  if (phase_ != nullptr && phase_->poll()) phase_ = nullptr;
  return phase_ == nullptr;
}

bool NcclCall::poll() {
  if (stage_ == Stage::idle) return true;
  if (stage_ == Stage::by_cuda) {
    if (!by_cuda_->poll()) return false;
    stage_ = Stage::idle;
    return true;
  }
  const cuda::Device::Current current(device_);
  while (stage_ != Stage::idle) {
    if (!advance()) return false;
  }
  return true;
}

bool NcclCall::advance() {
  switch (stage_) {
    case Stage::agreeing:
      if (!phase_is_over()) return false;
      take_records();
      return true;
    case Stage::naming:
      if (!phase_is_over()) return false;
      connect();
      return true;
    case Stage::connecting:
      if (!communicator().has_answered()) return false;
      launch();
      return true;
    case Stage::launching:
      if (!communicator().has_answered()) return false;
      deliver();
      return true;
    case Stage::computing:
      if (!has_computed()) return false;
      start_phase(*end_, {}, Stage::ending);
      return true;
    case Stage::ending: return phase_is_over() && end_call();
    default: return poll();  // it goes by the backend cuda
  }
}

// All ranks see the same records.
void NcclCall::take_records() {
  if (const auto objection = nccl_objection(records_, group_.is_asked)) {
    if (group_.is_asked) throw Unsupported(fmt::format("backend nccl: {}; the backend cuda does without", *objection));
    group_.objection = objection;
    release();
    static_cast<void>(start_by_cuda());
    return;
  }
  prepare_arrays();
  have_communicator(records_) ? launch() : name_communicator();
}

void NcclCall::name_communicator() {
  group_.communicators.erase(device_.index());
  const nccl::Functions& functions = *nccl::find().functions;
  if (facts().rank == 0) {
    const nccl::Result result = functions.unique_id(&id_);
    if (result != nccl::success)
      throw Error(fmt::format("NCCL: ncclGetUniqueId: {}", nccl::describe(functions, result, nullptr)));
  }
  auto* const bytes = reinterpret_cast<std::byte*>(&id_);
  start_phase(*naming_, {.input = bytes, .output = bytes}, Stage::naming);
}

void NcclCall::connect() {
  group_.communicators[device_.index()] = std::make_unique<NcclCommunicator>(*nccl::find().functions, facts(), id_);
  stage_ = Stage::connecting;
}

// With the context current. Packs what does not lie as NCCL needs it.
void NcclCall::prepare_arrays() {
  work_.begin(arrays_.input, arrays_.output);
  const View &in = request_.input, &out = request_.output;
  const bool is_apart =
      !in.present() || !out.present() || in.data() != out.data() || !needs_separate_output(request_.verb);
  if (in.present() && in.count() > 0 && !(packing_.input_is_packed() && is_apart)) {
    input_block_ = group_.on_device.take(device_, static_cast<std::size_t>(in.bytes()));
    packing_.pack(device_, work_.stream(), in, input_block_.memory);
  }
  if (packing_.layout().has_output && out.count() > 0 && !packing_.output_is_packed())
    output_block_ = group_.on_device.take(device_, static_cast<std::size_t>(out.bytes()));
}

void NcclCall::launch() {
  const auto place = [](const cuda::Block& block, const View& view) {
    return block ? block.memory : static_cast<std::byte*>(view.present() ? view.data() : nullptr);
  };
  communicator().ask(what_, steps_,
                     {.input = place(input_block_, request_.input), .output = place(output_block_, request_.output)},
                     work_.stream());
  stage_ = Stage::launching;
}

// NCCL's work is on the stream, and what comes behind it is done when that is.
void NcclCall::deliver() {
  if (output_block_) packing_.unpack(device_, work_.stream(), output_block_.memory, request_.output);
  work_.mark();
  stage_ = Stage::computing;
}

bool NcclCall::has_computed() {
  if (work_.is_over()) return true;
  static_cast<void>(communicator().has_answered());  // throws what went wrong
  return false;
}

bool NcclCall::end_call() {
  release();
  return true;
}

void NcclCall::release() {
  work_.end();
  for (cuda::Block* block : {&input_block_, &output_block_}) group_.on_device.give_back(*block);
  if (stage_ != Stage::idle) --group_.running;
  stage_ = Stage::idle;
}

void NcclCall::cancel() {
  if (stage_ == Stage::idle) return;
  if (stage_ == Stage::by_cuda) {
    by_cuda_->cancel();
    stage_ = Stage::idle;
    return;
  }
  if (PreparedCall* const phase = std::exchange(phase_, nullptr); phase != nullptr) phase->cancel();
  if (stage_ >= Stage::connecting)
    group_.communicators.erase(device_.index());  // NCCL's kernels end, and the stream goes on
  work_.abandon();
  release();
}

Progress NcclCall::progress() const {
  if (by_cuda_ != nullptr) return by_cuda_->progress();
  Progress progress = phase_ == nullptr ? Progress() : phase_->progress();
  const nccl::Found& found = nccl::find();
  progress.how = found.functions == nullptr ? "the backend cuda" : "NCCL " + nccl::version_text(found.version);
  progress.stage = stage_ >= Stage::launching ? 1 : 0;
  return progress;
}

}  // namespace tutti
