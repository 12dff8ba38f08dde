// signature.cpp: what the ranks of a call must agree on, drawn from a checked request.
// SPDX-License-Identifier: Apache-2.0
#include "group/signature.hpp"

#include <bit>

#include "base/hash.hpp"

namespace tutti {
namespace {

/// Calls `visit` with the lengths of the shape that all ranks share: of one block for the verbs that join or split, of the whole
/// array for the others. Where blocks differ in length, that axis counts as 0.
template <class Visit>
void for_each_common_length(const Request& request, const BlockLayout& layout, Visit visit) {
  const bool from_output = request.verb == Verb::scatter || !request.input.present();
  const auto shape = from_output ? std::span<const std::int64_t>(layout.output_shape) : request.input.shape();
  const bool axis_differs =
      !request.stack && (request.uneven || (request.verb == Verb::scatter && !request.sizes.empty()));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    visit(axis_differs && static_cast<int>(i) == request.axis ? 0 : shape[i]);
  }
}

}  // namespace

Signature signature_of(const Request& request, const BlockLayout& layout) {
  Signature signature{.verb = request.verb};
  if (reduces(request.verb)) signature.op = request.op.kind();
  if (has_root(request.verb)) signature.root = request.root;
  if (request.uneven) signature.flags |= Signature::uneven;
  if (request.differentiated) signature.flags |= Signature::differentiated;
  if (request.sizes_follow) signature.flags |= Signature::sizes_follow;
  if (request.verb == Verb::barrier) return signature;

  Hash hash;
  hash.add(static_cast<std::uint64_t>(request.axis))
      .add(static_cast<std::uint64_t>(request.concat_axis))
      .add(request.stack ? 1 : 0)
      .add(request.structure);
  if (reduces(request.verb)) hash.add(std::bit_cast<std::uint64_t>(request.op.factor()));
  if (reduces(request.verb) && request.op.keeps_rank_order()) hash.add(1);
  for (const auto& [source, destination] : request.pairs) {
    hash.add(static_cast<std::uint64_t>(source)).add(static_cast<std::uint64_t>(destination));
  }
  // What each rank sends in an uneven all_to_all is its own affair; all other sizes are common knowledge.
  const bool own_sizes = request.verb == Verb::all_to_all && request.uneven;
  if (!own_sizes) {
    for (const std::int64_t size : request.sizes) hash.add(static_cast<std::uint64_t>(size));
  }

  const bool root_tells = request.sizes_follow && root_gives(request.verb);
  if (root_tells) {  // the others know neither dtype nor shape, nor the root's sizes, nor an axis counted from the end
    signature.detail = static_cast<std::uint32_t>(Hash().add(request.stack ? 1 : 0).add(request.structure).value());
    return signature;
  }
  const View& any = request.input.present() ? request.input : request.output;
  if (any.device().kind == Device::Kind::cuda) signature.flags |= on_gpu_flag;
  signature.dtype = any.dtype();
  std::int64_t count = 1;
  for_each_common_length(request, layout, [&](std::int64_t length) {
    hash.add(static_cast<std::uint64_t>(length));
    count *= length;
  });
  signature.count = count;
  signature.detail = static_cast<std::uint32_t>(hash.value());
  return signature;
}

}  // namespace tutti
