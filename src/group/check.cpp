// check.cpp: what the door looks at before a call may pass: bad input is refused before any byte moves.
// SPDX-License-Identifier: Apache-2.0
#include "group/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include <tutti/error.hpp>
#include <tutti/verbs.hpp>

#include "backend/block_layout.hpp"
#include "base/extent.hpp"
#include "group/signature.hpp"

namespace tutti {
namespace {

template <class... Args>
[[noreturn]] void refuse(Verb verb, fmt::format_string<Args...> text, Args&&... args) {
  throw InvalidArgument(fmt::format("{}: {}", name_of(verb), fmt::format(text, std::forward<Args>(args)...)));
}

void check_dtype(Verb verb, const View& view) {
  if (!is_dtype(view.dtype())) {
    refuse(verb, "unknown dtype {}; the known ones are 0 (bool) to {} (float8_e5m2)", static_cast<int>(view.dtype()),
           dtype_count - 1);
  }
}

void check_rank(Verb verb, std::string_view what, int rank, int size) {
  if (rank < 0 || rank >= size)
    refuse(verb, "{} {} is not in the group, whose ranks are 0 to {}", what, rank, size - 1);
}

int normalized_axis(Verb verb, int axis, const View& view) {
  const int axes = view.axes();
  if (axes == 0) refuse(verb, "a number has no axis {} to cut or join along; pass an array", axis);
  if (axis < -axes || axis >= axes) {
    refuse(verb, "axis {} does not exist in an array of {} ax{}", axis, axes, axes == 1 ? "is" : "es");
  }
  return axis < 0 ? axis + axes : axis;
}

void check_pairs(const Request& request, int size) {
  std::set<int> sources, destinations;
  for (const auto& [source, destination] : request.pairs) {
    check_rank(request.verb, "source", source, size);
    check_rank(request.verb, "destination", destination, size);
    if (!sources.insert(source).second)
      refuse(request.verb, "rank {} is the source of two pairs; each rank sends once at most", source);
    if (!destinations.insert(destination).second) {
      refuse(request.verb, "rank {} is the destination of two pairs; each rank receives once at most", destination);
    }
  }
}

void check_sizes(Verb verb, const std::vector<std::int64_t>& sizes, int size) {
  if (sizes.empty()) return;
  if (static_cast<int>(sizes.size()) != size)
    refuse(verb, "{} sizes were given for {} ranks; give one per rank", sizes.size(), size);
  for (const std::int64_t each : sizes) {
    if (each < 0) refuse(verb, "size {} is negative", each);
  }
}

void check_operation(const Request& request, DType dtype) {
  if (!reduces(request.verb)) return;
  if (!applies(request.op, dtype)) {
    const std::string_view advice = is_struct(dtype) && request.op.kind() != Op::Kind::own
                                        ? "; say how two of them are combined: .op = tutti::op(function)"
                                    : request.op.kind() == Op::Kind::mean
                                        ? "; convert to a floating-point type, or use sum"
                                        : "";
    if (request.op.kind() == Op::Kind::own)
      refuse(request.verb, "the function of the program's own combines {}, but the array is of {}",
             name_of(request.op.own().dtype), name_of(dtype));
    refuse(request.verb, "{} does not apply to {}{}", name_of(request.op), name_of(dtype), advice);
  }
  if (is_prefix(request.verb) && request.op.kind() == Op::Kind::mean)
    refuse(request.verb, "mean is not defined here; use sum and divide");
}

/// Two results for one place: which of them stays would depend on the order in which bytes happen to move.
void check_places(Verb verb, std::string_view what, const View& out) {
  for (int i = 0; i < out.axes(); ++i) {
    const auto axis = static_cast<std::size_t>(i);
    if (out.count() > 0 && out.shape()[axis] > 1 && out.strides()[axis] == 0) {
      refuse(verb, "axis {} of {} repeats its elements (stride 0); pass one without", i, what);
    }
  }
  if (overlaps_itself(out)) {
    refuse(verb,
           "{} overlaps itself: with shape [{}] and strides [{}] (in elements) several of its elements are the same "
           "memory; pass an array in which each has its own, and copy from there",
           what, fmt::join(out.shape(), ", "), fmt::join(out.strides(), ", "));
  }
}

/// Input and output may be the same array, or (for the verbs with blocks) the input may be this rank's block of the output or
/// the other way round; any other overlap would make the result depend on the order in which bytes happen to move.
void check_overlap(const Request& request, const BlockLayout& layout) {
  const View &in = request.input, &out = request.output;
  if (!in.present() || !out.present() || !overlap(in, out)) return;
  const auto same = [](const View& x, const View& y) {
    return x.data() == y.data() && std::ranges::equal(x.strides(), y.strides()) && x.count() == y.count();
  };
  if (in.data() == out.data() && !layout.input_in_blocks && !layout.output_in_blocks && in.is_contiguous() &&
      out.is_contiguous())
    return;
  const Slices outputs{out, layout.output_axis, layout.output_sizes}, inputs{in, layout.input_axis, layout.input_sizes};
  const bool allowed =
      layout.input_in_blocks && layout.output_in_blocks
          ? same(in, out) && !request.uneven && layout.input_axis == layout.output_axis && inputs.adjacent()
      : layout.output_in_blocks
          ? in.is_contiguous() && outputs.adjacent() && outputs.slice(layout.rank).data() == in.data()
      : layout.input_in_blocks
          ? out.is_contiguous() && inputs.adjacent() && inputs.slice(layout.rank).data() == out.data()
          : same(in, out);
  if (!allowed) {
    refuse(request.verb,
           "input and output overlap without being the same array (or this rank's block of it); use separate memory");
  }
}

void check_output(const Request& request, const BlockLayout& layout) {
  if (!layout.has_output) return;
  const View& out = request.output;
  if (!out.present()) {
    if (!request.allocate) refuse(request.verb, "there is no array for the result on this rank");
    return;
  }
  check_dtype(request.verb, out);
  if (out.is_read_only()) refuse(request.verb, "the array for the result is read-only; pass a writable one");
  if (request.input.present() && out.dtype() != request.input.dtype()) {
    refuse(request.verb, "input is {} but the array for the result is {}", name_of(request.input.dtype()),
           name_of(out.dtype()));
  }
  const bool sizes_known = !request.sizes_follow;
  if (sizes_known && !std::ranges::equal(out.shape(), layout.output_shape)) {
    refuse(request.verb, "the result has shape [{}] but the array for it has shape [{}]",
           fmt::join(layout.output_shape, ", "), fmt::join(out.shape(), ", "));
  }
  if (!out.is_contiguous()) check_places(request.verb, "the array for the result", out);
}

void check_joined_sizes(const Request& request, int rank) {
  if (request.sizes.empty() || request.stack) return;
  const std::int64_t mine = request.input.shape()[static_cast<std::size_t>(request.axis)];
  if (request.sizes[static_cast<std::size_t>(rank)] != mine) {
    refuse(request.verb, "sizes say {} for this rank, but its array has length {} along axis {}",
           request.sizes[static_cast<std::size_t>(rank)], mine, request.axis);
  }
}

void check_split_sizes(const Request& request) {
  if (request.sizes.empty() || !request.input.present()) return;
  const std::int64_t length = request.input.shape()[static_cast<std::size_t>(request.axis)];
  const std::int64_t sum = std::accumulate(request.sizes.begin(), request.sizes.end(), std::int64_t{0});
  if (sum != length) refuse(request.verb, "sizes add up to {}, but axis {} has length {}", sum, request.axis, length);
}

/// The array by which a verb's axis is counted on this rank.
const View& reference(const Request& request) { return request.input.present() ? request.input : request.output; }

void check_blocks(Request& request, int rank, int size) {
  check_sizes(request.verb, request.sizes, size);
  check_sizes(request.verb, request.recv_sizes, size);
  const bool is_joined = joins(request.verb);
  if (request.stack) {
    request.axis = 0;
    if (!is_joined && request.input.present()) (void)normalized_axis(request.verb, 0, request.input);
  } else if (reference(request).present()) {
    request.axis = normalized_axis(request.verb, request.axis, reference(request));
  }
  if (request.verb == Verb::all_to_all) {
    request.concat_axis = normalized_axis(request.verb, request.concat_axis, request.input);
    request.uneven = !request.sizes.empty() && request.axis == request.concat_axis;
    if (!request.recv_sizes.empty() && !request.uneven) {
      refuse(request.verb, "recv_sizes need split_sizes, and the same axis for both");
    }
    request.sizes_follow = request.uneven && request.recv_sizes.empty();
    check_split_sizes(request);
    const auto own = static_cast<std::size_t>(rank);
    if (!request.recv_sizes.empty() && request.recv_sizes[own] != request.sizes[own]) {
      refuse(request.verb, "split_sizes say {} for the part that this rank keeps, but recv_sizes say {}",
             request.sizes[own], request.recv_sizes[own]);
    }
  } else if (is_joined) {
    if (!request.sizes.empty()) request.uneven = true;
    if (request.uneven && request.stack) refuse(request.verb, "uneven arrays cannot be stacked; give an axis");
    request.sizes_follow = request.uneven && request.sizes.empty();
    check_joined_sizes(request, rank);
  } else {
    check_split_sizes(request);
  }
}

/// Drops what a rank does not use: the input off the root of a broadcast or scatter, the output off the root of a reduce or gather.
void drop_unused(Request& request, int rank) {
  const bool at_root = rank == request.root;
  if (!at_root && root_gives(request.verb)) request.input = View();
  if (!at_root && root_gets(request.verb)) request.output = View();
  if (at_root && request.verb == Verb::broadcast && !request.input.present()) request.input = request.output;
}

}  // namespace

void check_collective(Request& request, int rank, int size, BlockLayout& layout) {
  const Verb verb = request.verb;
  if (is_message(verb)) throw InvalidArgument("not a collective verb");
  if (has_root(verb)) check_rank(verb, "root", request.root, size);
  if (verb == Verb::barrier) {
    request.signature = signature_of(request, layout);
    return;
  }
  drop_unused(request, rank);
  const bool needs_input = !root_gives(verb) || rank == request.root;
  if (needs_input && !request.input.present()) refuse(verb, "there is no input array on this rank");
  const bool learns_all = !needs_input && request.sizes_follow;
  if (!needs_input && !learns_all && !request.output.present())
    refuse(verb, "there is no array for the result on this rank");
  if (reference(request).present()) {
    check_dtype(verb, reference(request));
    check_operation(request, reference(request).dtype());
  }
  if (verb == Verb::permute) check_pairs(request, size);
  if (has_blocks(verb)) check_blocks(request, rank, size);

  if (!learns_all) {
    lay_out(request, rank, size, layout);
    check_output(request, layout);
    if (!request.sizes_follow) check_overlap(request, layout);
  }
  request.signature = signature_of(request, layout);
}

void check_message(Verb verb, const View& data, const MessageEnds& ends) {
  const bool receives = verb == Verb::recv;
  if (!data.present() && ends.has_data) refuse(verb, "there is no array");
  if (data.present()) check_dtype(verb, data);
  if (data.present() && data.device().kind != Device::Kind::cpu)
    refuse(verb, "the array is on a GPU, and messages move the CPU's memory; copy it there first");
  if (receives && data.is_read_only()) refuse(verb, "the array to receive into is read-only; pass a writable one");
  if (receives && !data.is_contiguous()) check_places(verb, "the array to receive into", data);
  if (ends.tag > tag_max && !ends.is_internal && !(receives && ends.tag == any_tag)) {
    if (ends.tag == any_tag) refuse(verb, "a message has one tag: any_tag is for receives and probes");
    refuse(verb, "tag {} is too large; tags are 0 to {}", ends.tag, tag_max);
  }
  if (ends.peer == nobody || (ends.peer == any_source && receives)) return;
  check_rank(verb, receives ? "source" : "destination", ends.peer, ends.size);
}

}  // namespace tutti
