// cuda_direct_call.cpp: a call on arrays of GPUs of one host.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda_direct_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include <tutti/error.hpp>

#include "backend/cuda_jobs.hpp"
#include "backend/lowering.hpp"
#include "backend/relocate.hpp"

namespace tutti {
namespace {

constexpr int ranks_max = cuda::Entrance::mailboxes_max;
constexpr unsigned kernel_threads = 256;

ExecutionSpec host_phase(const GroupFacts& facts, const Request& request, Verb verb, std::uint32_t phase) {
  ExecutionSpec what;
  what.spec.verb = verb;
  what.spec.rank = facts.rank;
  what.spec.size = facts.size;
  what.spec.count = verb == Verb::all_gather ? static_cast<std::int64_t>(sizeof(GpuRecord)) : 0;
  what.spec.node_of = facts.node_of;
  what.signature = request.signature;
  what.phase = phase;
  return what;
}

void launch_kernel(cuda::Function kernel, unsigned blocks, unsigned block_threads, cuda::Stream stream,
                   void* argument) {
  void* arguments[] = {argument};
  cuda::check(cuda::driver().launch(kernel, blocks, 1, 1, block_threads, 1, 1, 0, stream, arguments, nullptr),
              "cuLaunchKernel");
}

unsigned blocks_for(const cuda::Batch& batch, std::int64_t element_bytes, int multiprocessors) {
  constexpr std::int64_t vector = 16, blocks_per_multiprocessor = 8;
  std::int64_t longest = 1;
  for (int j = 0; j < batch.jobs; ++j) {
    const std::int64_t bytes = batch.job[j].count * element_bytes;
    longest = std::max(longest, batch.job[j].is_aligned ? bytes / vector : batch.job[j].count);
  }
  return static_cast<unsigned>(std::clamp<std::int64_t>((longest + kernel_threads - 1) / kernel_threads, 1,
                                                        blocks_per_multiprocessor * multiprocessors));
}

}  // namespace

bool CudaDirectCall::serves(const Request& request, const GroupFacts& facts) {
  const bool is_uneven_exchange = request.verb == Verb::all_to_all && !request.sizes.empty();
  const bool is_own = reduces(request.verb) && request.op.kind() == Op::Kind::own;
  return !request.sizes_follow && !is_uneven_exchange && !is_own && facts.size <= ranks_max;
}

CudaDirectCall::CudaDirectCall(const Parts& parts, const Request& request)
    : parts_(parts),
      request_(request),
      packing_(request, facts()),
      by_host_(parts.host, request),
      work_(*parts.host.device) {
  request_.allocate = nullptr;
  const View& any = request.input.present() ? request.input : request.output;
  what_.dtype = any.dtype();
  lower(request, packing_.layout(), facts(), what_);
  Executor& executor = *parts.host.staging.executor;
  exchange_ = executor.prepare(host_phase(facts(), request, Verb::all_gather, record_phase));
  end_ = executor.prepare(host_phase(facts(), request, Verb::barrier, end_phase));
  records_.resize(static_cast<std::size_t>(facts().size));
}

bool CudaDirectCall::start(const Buffers& buffers, const Signature& signature) {
  arrays_ = buffers;
  signature_ = signature;
  if (request_.input.present()) request_.input = relocate(request_.input, buffers.input);
  if (request_.output.present()) request_.output = relocate(request_.output, buffers.output);
  ++*parts_.host.running;
  stage_ = Stage::preparing;
  const cuda::Device::Current current(device());
  work_.begin(buffers.input, buffers.output);
  prepare_arrays();
  return poll();
}

// With the context current.
void CudaDirectCall::prepare_arrays() {
  own_ = {.process = CudaSharing::process(),
          .can_share = parts_.may_share && device().has_kernels(),
          .device_index = static_cast<std::uint64_t>(device().index()),
          .gpu = device().uuid()};
  if (own_.can_share == 0) return;
  const View &in = request_.input, &out = request_.output;
  const bool is_apart =
      !in.present() || !out.present() || in.data() != out.data() || !needs_separate_output(request_.verb);
  if (in.present() && in.count() > 0) {
    std::byte* const lent = lend(in, packing_.input_is_packed() && is_apart, input_block_, own_.input);
    if (lent != in.data()) packing_.pack(device(), work_.stream(), in, lent);
  }
  if (packing_.layout().has_output && out.present() && out.count() > 0)
    (void)lend(out, packing_.output_is_packed(), output_block_, own_.output);
  const auto mailbox = parts_.sharing->place_of(parts_.sharing->mailbox(device()));
  if (mailbox) own_.mailbox = *mailbox;
  else own_.can_share = 0;
  work_.mark();
}

/// The array where it lies, or memory that others can map.
std::byte* CudaDirectCall::lend(const View& view, bool is_packed, cuda::Block& block, GpuPlace& place) {
  if (is_packed) {
    if (const auto found = parts_.sharing->place_of(view.data())) {
      place = *found;
      return static_cast<std::byte*>(view.data());
    }
  }
  block = parts_.host.on_device->take(device(), static_cast<std::size_t>(view.bytes()));
  if (const auto found = parts_.sharing->place_of(block.memory)) place = *found;
  else own_.can_share = 0;
  return block.memory;
}

bool CudaDirectCall::poll() {
  if (stage_ == Stage::idle) return true;
  if (stage_ == Stage::by_host) {
    if (!by_host_.poll()) return false;
    release();
    return true;
  }
  const cuda::Device::Current current(device());
  return advance();
}

bool CudaDirectCall::advance() {
  switch (stage_) {
    case Stage::preparing: return work_.is_over() && start_records();
    case Stage::records: return exchange_->poll() && take_records();
    case Stage::computing: return work_.is_over() && start_end();
    case Stage::ending: return end_->poll() && deliver();
    case Stage::unpacking:
      if (!work_.is_over()) return false;
      release();
      return true;
    default: return false;
  }
}

bool CudaDirectCall::start_records() {
  stage_ = Stage::records;
  if (!exchange_->start(
          {.input = reinterpret_cast<const std::byte*>(&own_), .output = reinterpret_cast<std::byte*>(records_.data())},
          signature_))
    return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  exchange_->wake_peers();
  return take_records();
}

bool CudaDirectCall::take_records() {
  const bool all_share = std::ranges::all_of(records_, [](const GpuRecord& r) { return r.can_share != 0; });
  if (!all_share) {  // as all ranks see alike
    stage_ = Stage::by_host;
    work_.end();
    if (!by_host_.start(arrays_, signature_)) return false;
    release();
    return true;
  }
  const auto leader = std::ranges::find(records_, own_.gpu, &GpuRecord::gpu) - records_.begin();
  if (leader == facts().rank) {
    stage_ = Stage::computing;
    launch(static_cast<int>(leader));
    return work_.is_over() && start_end();
  }
  return start_end();
}

// With the context current.
void CudaDirectCall::launch(int leader) {
  GpuArrays arrays;
  std::vector<bool> is_mine;
  cuda::Entrance entrance;
  entrance.ticket = ticket();
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const GpuRecord& record = records_[i];
    const bool mine = record.gpu == own_.gpu;
    is_mine.push_back(mine);
    arrays.inputs.push_back(parts_.sharing->map(record.process, record.input));
    arrays.outputs.push_back(mine ? parts_.sharing->map(record.process, record.output) : nullptr);
    if (mine && static_cast<int>(i) != leader)
      entrance.mailbox[entrance.mailboxes++] =
          reinterpret_cast<cuda::Mailbox*>(parts_.sharing->map(record.process, record.mailbox));
  }
  const GpuKernel kernel = gpu_kernel(what_);
  auto batches = gpu_batches(what_, kernel, gpu_jobs(what_, arrays, is_mine));
  if (batches.empty()) return;
  const std::int64_t element_bytes = static_cast<std::int64_t>(size_of(what_.dtype)) / kernel.per_element;
  if (entrance.mailboxes > 0) {
    if (!permission_) permission_ = parts_.host.on_device->take(device(), sizeof *entrance.is_permitted);
    entrance.is_permitted = reinterpret_cast<unsigned*>(permission_.memory);
    launch_kernel(device().kernel("tutti_enter"), 1, 1, work_.stream(), &entrance);
  }
  cuda::Function const function = device().kernel(kernel.name);
  for (cuda::Batch& batch : batches) {
    batch.is_permitted = entrance.is_permitted;
    launch_kernel(function, blocks_for(batch, element_bytes, device().multiprocessors()), kernel_threads,
                  work_.stream(), &batch);
  }
  if (entrance.mailboxes > 0) launch_kernel(device().kernel("tutti_leave"), 1, 1, work_.stream(), &entrance);
  work_.mark();
}

bool CudaDirectCall::start_end() {
  stage_ = Stage::ending;
  if (!end_->start({}, signature_)) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  end_->wake_peers();
  return deliver();
}

// With the context current.
bool CudaDirectCall::deliver() {
  stage_ = Stage::unpacking;
  if (output_block_ && packing_.layout().has_output) {
    packing_.unpack(device(), work_.stream(), output_block_.memory, request_.output);
    work_.mark();
  }
  if (!work_.is_over()) return false;
  release();
  return true;
}

void CudaDirectCall::release() {
  work_.end();
  for (cuda::Block* block : {&input_block_, &output_block_, &permission_}) parts_.host.on_device->give_back(*block);
  if (stage_ != Stage::idle) --*parts_.host.running;
  stage_ = Stage::idle;
}

void CudaDirectCall::cancel() {
  if (stage_ == Stage::idle) return;
  if (stage_ == Stage::by_host) by_host_.cancel();
  if (stage_ == Stage::records) exchange_->cancel();
  if (stage_ == Stage::ending) end_->cancel();
  if (stage_ == Stage::records || stage_ == Stage::computing || stage_ == Stage::ending) {
    const cuda::Device::Current current(device());
    parts_.sharing->revoke(ticket());
  }
  work_.abandon();
  release();
}

Progress CudaDirectCall::progress() const {
  if (stage_ == Stage::by_host) return by_host_.progress();
  Progress progress;
  if (stage_ == Stage::records) progress = exchange_->progress();
  if (stage_ == Stage::ending) progress = end_->progress();
  progress.how = "CUDA IPC";
  progress.stage = stage_ >= Stage::computing ? 1 : 0;
  return progress;
}

}  // namespace tutti
