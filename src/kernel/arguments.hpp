// arguments.hpp: what every kernel checks before it touches memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>

#include <tutti/dtype.hpp>
#include <tutti/error.hpp>
#include <tutti/op.hpp>

namespace tutti::kernel {

/// The bytes of `count` elements; InvalidArgument for a negative count, one beyond memory, or an unknown dtype.
inline std::size_t checked_bytes(std::string_view what, DType dtype, std::int64_t count) {
  if (!is_dtype(dtype)) {
    throw InvalidArgument(fmt::format("cannot {}: {} is not the number of an element type", what, int(dtype)));
  }
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  if (count < 0 || count > std::numeric_limits<std::int64_t>::max() / size) {
    throw InvalidArgument(fmt::format("cannot {} {} elements of {}", what, count, name_of(dtype)));
  }
  return static_cast<std::size_t>(count * size);
}

/// InvalidArgument where the reduction makes no sense for the elements.
inline void require_applies(std::string_view what, const Op& op, DType dtype) {
  if (applies(op, dtype)) return;
  throw InvalidArgument(fmt::format("cannot {} {}: {} does not apply to these elements", what, name_of(dtype),
                                    op.kind() == Op::Kind::premul ? "premul" : name_of(op)));
}

}  // namespace tutti::kernel
