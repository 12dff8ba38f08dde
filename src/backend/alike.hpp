// alike.hpp: requests that differ in nothing but addresses.
// SPDX-License-Identifier: Apache-2.0
//
// Programs make the same call over and over. What was found out of the first one (that it is sound, how its arrays fall into
// blocks, its signature) holds for the next one too, if that is like it.
#pragma once

#include <algorithm>
#include <cstddef>

#include <tutti/request.hpp>

#include "base/extent.hpp"

namespace tutti {

inline bool alike(const View& a, const View& b) {
  return a.present() == b.present() && a.dtype() == b.dtype() && a.axes() == b.axes() &&
         a.is_read_only() == b.is_read_only() && a.device() == b.device() &&
         std::equal(a.shape().begin(), a.shape().end(), b.shape().begin()) &&
         std::equal(a.strides().begin(), a.strides().end(), b.strides().begin());
}

/// Input and output lie to each other as they do in the other request: at the same distance, or apart in both.
inline bool lie_alike(const Request& a, const Request& b) {
  const auto distance = [](const Request& r) {
    return static_cast<const std::byte*>(r.input.data()) - static_cast<const std::byte*>(r.output.data());
  };
  return distance(a) == distance(b) || (!overlap(a.input, a.output) && !overlap(b.input, b.output));
}

inline bool alike(const Request& a, const Request& b) {
  return a.verb == b.verb && a.op == b.op && a.root == b.root && a.axis == b.axis && a.concat_axis == b.concat_axis &&
         a.stack == b.stack && a.uneven == b.uneven && a.differentiated == b.differentiated &&
         a.sizes_follow == b.sizes_follow && !a.allocate && !b.allocate && alike(a.input, b.input) &&
         alike(a.output, b.output) && lie_alike(a, b) && a.sizes == b.sizes && a.recv_sizes == b.recv_sizes &&
         a.pairs == b.pairs;
}

}  // namespace tutti
