// command.cpp: what the commands of `tutti` share.
// SPDX-License-Identifier: Apache-2.0
#include "launch/command.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::launch {

std::string examples(std::initializer_list<Example> list) {
  std::size_t width = 0;
  for (const Example& example : list) width = std::max(width, example.command.size());
  std::string text = "Examples:";
  for (const Example& example : list) text += fmt::format("\n  {:<{}}  # {}", example.command, width, example.meaning);
  return text;
}

}  // namespace tutti::launch
