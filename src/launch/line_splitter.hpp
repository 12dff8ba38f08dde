// line_splitter.hpp: splits the bytes of a pipe into whole lines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tutti::launch {

class LineSplitter {
 public:
  enum class Piece {
    whole,      // one or more lines, each with its newline
    begun,      // of a line that is too long to keep: its first part, without a newline
    continued,  // and further parts
    ended,      // and its last part, with the newline
  };
  using Take = std::function<void(std::string_view text, Piece piece)>;

  // Maximum length of a line; a longer one is passed on in parts, so that memory is bounded.
  explicit LineSplitter(std::size_t line_bytes_max = std::size_t{1} << 20) : line_bytes_max_(line_bytes_max) {}

  void add(std::string_view bytes, const Take& take);
  // The stream has ended: a last line without a newline gets one.
  void finish(const Take& take);

 private:
  void keep(std::string_view bytes, const Take& take);
  void complete(std::string_view rest_of_line, const Take& take);

  std::size_t line_bytes_max_;
  std::string partial_;
  bool is_inside_long_line_ = false;
};

}  // namespace tutti::launch
