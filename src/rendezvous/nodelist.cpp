// nodelist.cpp: expanding Slurm's short forms.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/nodelist.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

#include <tutti/error.hpp>

#include "base/environment.hpp"

namespace tutti::rendezvous {
namespace {

constexpr std::size_t nodes_max = std::size_t{1} << 20;

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw InvalidArgument(fmt::format("\"{}\" is no Slurm list: {}", text, why));
}

// The parts between commas that stand outside of brackets.
std::vector<std::string_view> split_outside_brackets(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '[' || c == ']') {
      if (inside == (c == '[')) refuse(text, "its brackets do not pair");
      inside = c == '[';
    } else if (c == ',' && (!inside || i == text.size())) {
      if (inside) refuse(text, "a bracket is not closed");
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  return parts;
}

std::int64_t digits(std::string_view text, std::string_view whole) {
  const auto value = parse_integer(text);
  if (!value || *value < 0 || text.empty() || text.front() == '-' || text.front() == '+') {
    refuse(whole, fmt::format("\"{}\" is not a number", text));
  }
  return *value;
}

// "1-3,07" → 1 2 3 07.
std::vector<std::string> expand_ranges(std::string_view ranges, std::string_view whole) {
  std::vector<std::string> numbers;
  for (const std::string_view range : split_outside_brackets(ranges)) {
    const auto dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
    const std::int64_t low = digits(first, whole), high = digits(last, whole);
    if (high < low) refuse(whole, fmt::format("the range {} runs backwards", range));
    if (high - low >= static_cast<std::int64_t>(nodes_max)) refuse(whole, "it names too many nodes");
    for (std::int64_t i = low; i <= high; ++i) numbers.push_back(fmt::format("{:0{}}", i, first.size()));
  }
  return numbers;
}

// One name with any number of bracketed parts, the rightmost running fastest.
std::vector<std::string> expand_name(std::string_view name, std::string_view whole) {
  std::vector<std::string> expanded{""};
  while (!name.empty()) {
    const auto open = name.find('[');
    const auto close = open == std::string_view::npos ? open : name.find(']', open);
    const std::string_view literal = name.substr(0, open);
    const auto numbers = open == std::string_view::npos ? std::vector<std::string>{""}
                                                        : expand_ranges(name.substr(open + 1, close - open - 1), whole);
    if (expanded.size() * numbers.size() > nodes_max) refuse(whole, "it names too many nodes");
    std::vector<std::string> longer;
    for (const std::string& head : expanded) {
      for (const std::string& tail : numbers) longer.push_back(head + std::string(literal) + tail);
    }
    expanded = std::move(longer);
    name = close == std::string_view::npos ? std::string_view{} : name.substr(close + 1);
  }
  return expanded;
}

}  // namespace

std::vector<std::string> expand_nodelist(std::string_view text) {
  std::vector<std::string> nodes;
  for (const std::string_view name : split_outside_brackets(text)) {
    if (name.empty()) refuse(text, "a name is empty");
    for (std::string& node : expand_name(name, text)) nodes.push_back(std::move(node));
    if (nodes.size() > nodes_max) refuse(text, "it names too many nodes");
  }
  return nodes;
}

int tasks_on_node(std::string_view text, int node) {
  std::int64_t before = 0;
  for (const std::string_view part : split_outside_brackets(text)) {
    const auto repeat_at = part.find("(x");
    const bool repeated = repeat_at != std::string_view::npos;
    if (repeated && !part.ends_with(')')) refuse(text, "a parenthesis is not closed");
    const std::int64_t tasks = digits(part.substr(0, repeat_at), text);
    const std::int64_t nodes = repeated ? digits(part.substr(repeat_at + 2, part.size() - repeat_at - 3), text) : 1;
    if (tasks < 1 || tasks > (1 << 24) || nodes > (1 << 24)) refuse(text, "a number is out of range");
    before += nodes;
    if (node < before) return static_cast<int>(tasks);
  }
  refuse(text, fmt::format("it has no node {}", node));
}

}  // namespace tutti::rendezvous
