// staging.cpp: how a collective's arrays get into and out of the contiguous buffers that executors work on.
// SPDX-License-Identifier: Apache-2.0
#include "backend/staging.hpp"

#include "kernel/kernel.hpp"

namespace tutti {
namespace {

using Job = Staging::Job;

Slices input_slices(const Job& job) { return {job.request->input, job.layout->input_axis, job.layout->input_sizes}; }
Slices output_slices(const Job& job) {
  return {job.request->output, job.layout->output_axis, job.layout->output_sizes};
}

void pack_slices(const Slices& blocks, int size, std::byte* to) {
  for (int rank = 0; rank < size; ++rank) {
    kernel::pack(blocks.slice(rank), to);
    to += blocks.count(rank) * static_cast<std::int64_t>(size_of(blocks.whole.dtype()));
  }
}

void unpack_slices(const std::byte* from, const Slices& blocks, int size) {
  for (int rank = 0; rank < size; ++rank) {
    kernel::unpack(from, blocks.slice(rank));
    from += blocks.count(rank) * static_cast<std::int64_t>(size_of(blocks.whole.dtype()));
  }
}

bool is_input_packed(const Job& job) {
  return job.layout->input_in_blocks ? input_slices(job).adjacent() : job.request->input.is_contiguous();
}

bool is_output_packed(const Job& job) {
  return job.layout->output_in_blocks ? output_slices(job).adjacent() : job.request->output.is_contiguous();
}

bool is_scaled(const Job& job) { return reduces(job.request->verb) && job.request->op.kind() == Op::Kind::premul; }

}  // namespace

bool Staging::is_input_direct(const Job& job) {
  const View& view = job.request->input;
  return !view.present() || (is_input_packed(job) && job.wire == view.dtype() && !is_scaled(job));
}

bool Staging::is_output_direct(const Job& job) {
  const View& view = job.request->output;
  return !job.layout->has_output || !view.present() || (is_output_packed(job) && job.wire == view.dtype());
}

const std::byte* Staging::take_input(const Job& job) {
  const View& view = job.request->input;
  const auto* narrow = static_cast<const std::byte*>(view.data());
  if (!view.present()) return nullptr;
  if (is_input_direct(job)) return narrow;

  const bool is_widened = job.wire != view.dtype();
  const auto count = static_cast<std::size_t>(view.count());
  input_ = pool_.take();
  std::byte* const staged = input_.reserve(count * size_of(job.wire));
  if (!is_input_packed(job)) {
    if (is_widened) narrow_ = pool_.take();
    std::byte* const packed = is_widened ? narrow_.reserve(count * size_of(view.dtype())) : staged;
    job.layout->input_in_blocks ? pack_slices(input_slices(job), job.layout->size, packed) : kernel::pack(view, packed);
    narrow = packed;
  }
  if (is_widened) {
    kernel::cast(job.wire, staged, view.dtype(), narrow, view.count());
    narrow = staged;
  }
  if (is_scaled(job)) kernel::scale(job.wire, staged, narrow, job.request->op.factor(), view.count());
  return staged;
}

std::byte* Staging::place_output(const Job& job, const std::byte* input) {
  const View& view = job.request->output;
  staged_output_ = nullptr;
  if (!job.layout->has_output || !view.present()) return nullptr;
  if (is_output_direct(job)) return static_cast<std::byte*>(view.data());
  // Where input and output have one shape, the staged input serves as the output too.
  const bool one_shape = !job.layout->input_in_blocks && !job.layout->output_in_blocks;
  if (one_shape && input != nullptr && input == input_.data()) return staged_output_ = input_.data();
  output_ = pool_.take();
  return staged_output_ = output_.reserve(static_cast<std::size_t>(view.count()) * size_of(job.wire));
}

void Staging::deliver(const Job& job) {
  if (staged_output_ == nullptr) return;
  const View& view = job.request->output;
  const std::byte* from = staged_output_;
  if (job.wire != view.dtype()) {
    const bool packed = is_output_packed(job);
    if (!packed && narrow_.capacity() == 0) narrow_ = pool_.take();
    std::byte* const narrow = packed ? static_cast<std::byte*>(view.data())
                                     : narrow_.reserve(static_cast<std::size_t>(view.count()) * size_of(view.dtype()));
    if (job.request->verb == Verb::exscan && job.layout->rank == 0) {
      // The identity is that of the caller's type: float8_e4m3 has no infinity to round float32's to.
      kernel::fill_identity(job.request->op.kind(), view.dtype(), narrow, view.count());
    } else {
      kernel::cast(view.dtype(), narrow, job.wire, from, view.count());
    }
    if (packed) return;
    from = narrow;
  }
  job.layout->output_in_blocks ? unpack_slices(from, output_slices(job), job.layout->size) : kernel::unpack(from, view);
}

void Staging::give_back() {
  for (AlignedBuffer* buffer : {&output_, &narrow_, &input_}) pool_.give_back(std::move(*buffer));
  staged_output_ = nullptr;
}

}  // namespace tutti
