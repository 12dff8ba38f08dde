// picture.hpp: the messages of a call as a picture: ranks are columns, time goes down, messages are arrows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/style.hpp"
#include "sim/timeline.hpp"

namespace tutti::cli {

using sim::LocalWork;
using sim::Message;
using sim::Timeline;

/// More columns do not fit a terminal.
inline constexpr int text_picture_ranks_max = 16;
/// The most messages that a drawing can show legibly.
inline constexpr int svg_ranks_max = 64;
inline constexpr std::size_t svg_messages_max = 4000;

struct TextPicture {
  int lines_max = 48;  // what does not fit is counted instead
};
/// Messages that are under way together share a line where they do not cross; the time is that of the first of them.
std::string draw_text(const Timeline& timeline, const Style& style, const TextPicture& limits = {});

struct SvgTitle {
  std::string title;     // "all_reduce of 1 MiB on 8 ranks"
  std::string subtitle;  // "ring in segments of 64 KiB"
};
/// To scale: a message is a line from where it is sent to where it is there. InvalidArgument if it could not be read.
std::string draw_svg(const Timeline& timeline, const SvgTitle& title);

}  // namespace tutti::cli
