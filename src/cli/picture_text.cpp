// picture_text.cpp: the messages of a call in a terminal.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "cli/explanation.hpp"
#include "cli/picture.hpp"

namespace tutti::cli {

namespace {

constexpr std::size_t gutter = 10;  // the time, to the left

// One arrow, or two that go both ways between the same ranks.
struct Arrow {
  int left = 0, right = 0;
  bool to_right = false, to_left = false;
  bool reduced = false;
};

using Line = std::vector<Arrow>;  // arrows that do not cross

struct Slot {
  double begin = 0;
  std::vector<Arrow> arrows{};
  int messages = 0;
  std::int64_t bytes_min = 0, bytes_max = 0;
};

void add_arrow(std::vector<Arrow>& arrows, const Message& message) {
  const bool to_right = message.from < message.to;
  const Arrow arrow{.left = std::min(message.from, message.to),
                    .right = std::max(message.from, message.to),
                    .to_right = to_right,
                    .to_left = !to_right,
                    .reduced = message.reduced};
  for (Arrow& other : arrows) {
    const bool opposite = other.to_right != to_right && other.to_left == to_right;
    if (other.left != arrow.left || other.right != arrow.right || !opposite || other.reduced != arrow.reduced) continue;
    other.to_right = other.to_left = true;
    return;
  }
  arrows.push_back(arrow);
}

std::vector<Slot> slots_of(const Timeline& timeline) {
  std::vector<Slot> slots(static_cast<std::size_t>(timeline.slots));
  for (const Message& message : timeline.messages) {
    if (message.from == message.to) continue;
    Slot& slot = slots[static_cast<std::size_t>(message.slot)];
    slot.begin = slot.messages == 0 ? message.begin : std::min(slot.begin, message.begin);
    slot.bytes_min = slot.messages == 0 ? message.bytes : std::min(slot.bytes_min, message.bytes);
    slot.bytes_max = std::max(slot.bytes_max, message.bytes);
    ++slot.messages;
    add_arrow(slot.arrows, message);
  }
  return slots;
}

// Short arrows first, each on the first line where nothing is in its way. Arrows may meet at a rank.
std::vector<Line> lines_of(std::vector<Arrow> arrows) {
  std::stable_sort(arrows.begin(), arrows.end(), [](const Arrow& a, const Arrow& b) {
    return std::pair(a.right - a.left, a.left) < std::pair(b.right - b.left, b.left);
  });
  std::vector<Line> lines;
  for (const Arrow& arrow : arrows) {
    const auto free = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
      return std::none_of(line.begin(), line.end(),
                          [&](const Arrow& other) { return arrow.left < other.right && other.left < arrow.right; });
    });
    (free == lines.end() ? lines.emplace_back() : *free).push_back(arrow);
  }
  return lines;
}

// Cells of one line; each is one character, painted by itself.
class Canvas {
 public:
  Canvas(int ranks, int width)
      : width_(width), cells_(static_cast<std::size_t>((ranks - 1) * width + 1), {" ", Tone::plain}) {
    for (int rank = 0; rank < ranks; ++rank) at(column(rank)) = {"│", Tone::dim};
  }

  void draw(const Arrow& arrow) {
    const Tone tone = arrow.reduced ? Tone::yellow : Tone::cyan;
    const int left = column(arrow.left), right = column(arrow.right);
    for (int i = left + 1; i < right; ++i) at(i) = {i % width_ == 0 ? "┼" : "─", tone};
    // Two arrows that meet at a rank: what starts there is seen before what ends there.
    if (arrow.to_right) at(right - 1) = {"▶", tone};
    else at(right) = {at(right).sign == std::string_view("├") ? "┼" : "┤", tone};
    if (arrow.to_left) at(left + 1) = {"◀", tone};
    else at(left) = {at(left).sign == std::string_view("┤") ? "┼" : "├", tone};
  }

  [[nodiscard]] std::string text(const Style& style) const {
    std::string text;
    for (std::size_t i = 0; i < cells_.size();) {
      std::string run;
      const Tone tone = cells_[i].tone;
      for (; i < cells_.size() && cells_[i].tone == tone; ++i) run += cells_[i].sign;
      text += style.paint(tone, run);
    }
    return text;
  }

 private:
  struct Cell {
    const char* sign;
    Tone tone;
  };
  [[nodiscard]] int column(int rank) const { return rank * width_; }
  Cell& at(int index) { return cells_[static_cast<std::size_t>(index)]; }
  int width_;
  std::vector<Cell> cells_;
};

std::string header(int ranks, int width, const Style& style) {
  std::string text = pad("time", gutter - 2, Side::right) + "  ";
  std::string numbers;
  for (int rank = 0; rank < ranks; ++rank) numbers += pad(fmt::format("{}", rank), static_cast<std::size_t>(width));
  numbers.erase(numbers.find_last_not_of(' ') + 1);
  return style.paint(Tone::dim, text) + style.paint(Tone::bold, numbers) + '\n';
}

std::string note_of(const Slot& slot) {
  const std::string smallest = format_bytes(slot.bytes_min), largest = format_bytes(slot.bytes_max);
  const std::string bytes = smallest == largest ? smallest : fmt::format("{} to {}", smallest, largest);
  return slot.messages == 1 ? bytes : fmt::format("{} × {}", slot.messages, bytes);
}

}  // namespace

std::string draw_text(const Timeline& timeline, const Style& style, const TextPicture& limits) {
  if (timeline.ranks > text_picture_ranks_max) {
    return fmt::format("No picture: {} ranks are too many for a terminal (at most {}).\n", timeline.ranks,
                       text_picture_ranks_max);
  }
  if (timeline.messages.empty()) return "No picture: nothing is sent.\n";
  const int width = timeline.ranks <= 10 ? 6 : 5;
  std::string text = header(timeline.ranks, width, style);
  int lines = 0, messages_left_out = 0;
  for (const Slot& slot : slots_of(timeline)) {
    const std::vector<Line> drawn = lines_of(slot.arrows);
    if (messages_left_out > 0 || lines + static_cast<int>(drawn.size()) > limits.lines_max) {
      messages_left_out += slot.messages;
      continue;
    }
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      Canvas canvas(timeline.ranks, width);
      for (const Arrow& arrow : drawn[i]) canvas.draw(arrow);
      const std::string time = i > 0 ? "" : slot.begin == 0 ? "0" : seconds_text(slot.begin);
      text += style.paint(Tone::dim, pad(time, gutter - 2, Side::right)) + "  " + canvas.text(style);
      if (i == 0) text += style.paint(Tone::dim, "   " + note_of(slot));
      text += '\n';
    }
    lines += static_cast<int>(drawn.size());
  }
  if (messages_left_out > 0) text += fmt::format("{}⋮ {} more messages\n", std::string(gutter, ' '), messages_left_out);
  text += style.paint(Tone::dim, pad(seconds_text(timeline.seconds), gutter - 2, Side::right) + "  all done") + '\n';
  return text;
}

}  // namespace tutti::cli
