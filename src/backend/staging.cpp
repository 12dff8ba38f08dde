// staging.cpp: how a collective's arrays get into and out of the contiguous buffers that plans work on.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "backend/collective.hpp"
#include "backend/native.hpp"
#include "kernel/kernel.hpp"

namespace tutti {

Slices Collective::input_slices() const { return {request_.input, layout_.input_axis, layout_.input_sizes}; }
Slices Collective::output_slices() const { return {request_.output, layout_.output_axis, layout_.output_sizes}; }

void Collective::pack_slices(const Slices& blocks, std::byte* to) const {
  for (int rank = 0; rank < layout_.size; ++rank) {
    kernel::pack(blocks.slice(rank), to);
    to += blocks.count(rank) * static_cast<std::int64_t>(size_of(blocks.whole.dtype()));
  }
}

void Collective::unpack_slices(const std::byte* from, const Slices& blocks) const {
  for (int rank = 0; rank < layout_.size; ++rank) {
    kernel::unpack(from, blocks.slice(rank));
    from += blocks.count(rank) * static_cast<std::int64_t>(size_of(blocks.whole.dtype()));
  }
}

const std::byte* Collective::stage_input() {
  const View& view = request_.input;
  if (!view.present()) return nullptr;
  const bool direct = layout_.input_in_blocks ? input_slices().adjacent() : view.is_contiguous();
  const bool widened = wire_dtype_ != view.dtype();
  const bool scaled = reduces(request_.verb) && request_.op.kind() == Op::Kind::premul;
  const auto* narrow = static_cast<const std::byte*>(view.data());
  if (direct && !widened && !scaled) return narrow;

  const auto count = static_cast<std::size_t>(view.count());
  std::byte* staged = input_stage_.reserve(count * size_of(wire_dtype_));
  if (!direct) {
    std::byte* packed = widened ? narrow_stage_.reserve(count * size_of(view.dtype())) : staged;
    layout_.input_in_blocks ? pack_slices(input_slices(), packed) : kernel::pack(view, packed);
    narrow = packed;
  }
  if (widened) {
    kernel::cast(wire_dtype_, staged, view.dtype(), narrow, view.count());
    narrow = staged;
  }
  if (scaled) kernel::scale(wire_dtype_, staged, narrow, request_.op.factor(), view.count());
  return staged;
}

std::byte* Collective::stage_output(const std::byte* input) {
  const View& view = request_.output;
  staged_output_ = nullptr;
  if (!layout_.has_output || !view.present()) return nullptr;
  const bool direct = layout_.output_in_blocks ? output_slices().adjacent() : view.is_contiguous();
  if (direct && wire_dtype_ == view.dtype()) return static_cast<std::byte*>(view.data());
  // Where input and output have one shape, the staged input serves as the output too.
  const bool one_shape = !layout_.input_in_blocks && !layout_.output_in_blocks;
  staged_output_ = one_shape && input != nullptr && input == input_stage_.data()
                       ? input_stage_.data()
                       : output_stage_.reserve(static_cast<std::size_t>(view.count()) * size_of(wire_dtype_));
  return staged_output_;
}

void Collective::finish_execution() {
  stage_ = Stage::done;
  if (staged_output_ == nullptr) return;
  const View& view = request_.output;
  const std::byte* from = staged_output_;
  if (wire_dtype_ != view.dtype()) {
    const bool direct = layout_.output_in_blocks ? output_slices().adjacent() : view.is_contiguous();
    std::byte* narrow = direct ? static_cast<std::byte*>(view.data())
                               : narrow_stage_.reserve(static_cast<std::size_t>(view.count()) * size_of(view.dtype()));
    if (request_.verb == Verb::exscan && layout_.rank == 0) {
      // The identity is that of the caller's type: float8_e4m3 has no infinity to round float32's to.
      kernel::fill_identity(request_.op.kind(), view.dtype(), narrow, view.count());
    } else {
      kernel::cast(view.dtype(), narrow, wire_dtype_, from, view.count());
    }
    if (direct) return;
    from = narrow;
  }
  layout_.output_in_blocks ? unpack_slices(from, output_slices()) : kernel::unpack(from, view);
}

}  // namespace tutti
