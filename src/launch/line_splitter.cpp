// line_splitter.cpp: keeps only what has no newline yet.
// SPDX-License-Identifier: Apache-2.0
#include "launch/line_splitter.hpp"

#include <algorithm>

namespace tutti::launch {

void LineSplitter::add(std::string_view bytes, const Take& take) {
  if (!partial_.empty() || is_inside_long_line_) {
    const std::size_t newline = bytes.find('\n');
    if (newline == std::string_view::npos) return keep(bytes, take);
    complete(bytes.substr(0, newline + 1), take);
    bytes.remove_prefix(newline + 1);
  }
  const std::size_t last_newline = bytes.rfind('\n');
  if (last_newline != std::string_view::npos) {
    take(bytes.substr(0, last_newline + 1), Piece::whole);
    bytes.remove_prefix(last_newline + 1);
  }
  keep(bytes, take);
}

void LineSplitter::finish(const Take& take) {
  if (!partial_.empty() || is_inside_long_line_) complete("\n", take);
}

void LineSplitter::keep(std::string_view bytes, const Take& take) {
  while (partial_.size() + bytes.size() > line_bytes_max_) {
    const std::size_t fits = line_bytes_max_ - partial_.size();
    partial_.append(bytes.substr(0, fits));
    bytes.remove_prefix(fits);
    take(partial_, is_inside_long_line_ ? Piece::continued : Piece::begun);
    is_inside_long_line_ = true;
    partial_.clear();
  }
  partial_.append(bytes);
}

void LineSplitter::complete(std::string_view rest_of_line, const Take& take) {
  keep(rest_of_line.substr(0, rest_of_line.size() - 1), take);
  partial_.push_back('\n');
  take(partial_, is_inside_long_line_ ? Piece::ended : Piece::whole);
  is_inside_long_line_ = false;
  // A long line is rare; its memory is not worth keeping for each of a thousand streams.
  if (partial_.capacity() > 4096) partial_ = {};
  partial_.clear();
}

}  // namespace tutti::launch
