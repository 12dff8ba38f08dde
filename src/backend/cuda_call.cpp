// cuda_call.cpp: what the calls on arrays of a GPU have in common.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda_call.hpp"

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "cuda/ready.hpp"
#include "cuda/strided.hpp"

namespace tutti {
namespace {

/// The rank's blocks one after the other, as the other ranks see the array.
template <class Copy>
void for_each_block(const View& view, const Slices* blocks, int size, std::byte* packed, Copy copy) {
  if (blocks == nullptr) return copy(view, View(packed, view.dtype(), view.shape(), view.device()));
  for (int rank = 0; rank < size; ++rank) {
    const View slice = blocks->slice(rank);
    copy(slice, View(packed, view.dtype(), slice.shape(), view.device()));
    packed += slice.bytes();
  }
}

}  // namespace

int device_of(const Request& request) {
  const View &in = request.input, &out = request.output;
  if (in.present() && out.present() && !(in.device() == out.device())) {
    const auto words = [](const View& view) {
      return view.device().kind == Device::Kind::cuda ? fmt::format("GPU {}", view.device().index)
                                                      : std::string("the CPU's memory");
    };
    throw InvalidArgument(fmt::format(
        "the input lies on {}, the array for the result on {}; pass two on the same device", words(in), words(out)));
  }
  return (in.present() ? in : out).device().index;
}

GpuPacking::GpuPacking(const Request& request, const GroupFacts& facts) {
  lay_out(request, facts.rank, facts.size, layout_);
  const View &in = request.input, &out = request.output;
  if (in.present()) {
    input_is_packed_ =
        layout_.input_in_blocks ? Slices{in, layout_.input_axis, layout_.input_sizes}.adjacent() : in.is_contiguous();
  }
  if (out.present()) {
    output_is_packed_ = layout_.output_in_blocks ? Slices{out, layout_.output_axis, layout_.output_sizes}.adjacent()
                                                 : out.is_contiguous();
  }
}

void GpuPacking::pack(cuda::Device& device, cuda::Stream stream, const View& input, std::byte* to) const {
  const Slices blocks{input, layout_.input_axis, layout_.input_sizes};
  for_each_block(input, layout_.input_in_blocks ? &blocks : nullptr, layout_.size, to,
                 [&](const View& own, const View& packed) { cuda::copy_view(device, stream, packed, own); });
}

void GpuPacking::unpack(cuda::Device& device, cuda::Stream stream, std::byte* from, const View& output) const {
  const Slices blocks{output, layout_.output_axis, layout_.output_sizes};
  for_each_block(output, layout_.output_in_blocks ? &blocks : nullptr, layout_.size, from,
                 [&](const View& own, const View& packed) { cuda::copy_view(device, stream, own, packed); });
}

void GpuWork::begin(const void* input, const void* output) {
  stream_ = device_.take_stream();
  event_ = device_.take_event();
  is_marked_ = false;
  cuda::wait_until_ready(device_, input, stream_);
  if (output != input) cuda::wait_until_ready(device_, output, stream_);
  mark();
}

void GpuWork::mark() {
  cuda::check(cuda::driver().record(event_, stream_), "cuEventRecord");
  is_marked_ = true;
}

void GpuWork::end() {
  if (stream_ == nullptr) return;
  device_.give_back_stream(stream_);
  device_.give_back(event_);
  stream_ = nullptr;
  event_ = nullptr;
  is_marked_ = false;
}

void GpuWork::abandon() {
  if (stream_ == nullptr) return;
  const cuda::Device::Current current(device_);
  if (is_marked_) {
    static_cast<void>(cuda::driver().record(event_, stream_));
    static_cast<void>(cuda::driver().synchronize(event_));
  }
  end();
}

}  // namespace tutti
