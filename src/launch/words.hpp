// words.hpp: where tuttirun's own words end and the program's begin.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::launch {

enum class OptionKind { unknown, flag, takes_value };

struct SplitWords {
  std::vector<std::string> options = {};  // "--name=value", "-n4": one word each, with - where torchrun writes _
  std::vector<std::string> program = {};  // the rest, untouched
};

// `kind_of` knows the options by their names ("--quiet", "-n"). Throws UsageError for one it does not know, with the nearest
// of `known`, and for one whose value is missing.
SplitWords split_words(std::span<const std::string> words, const std::function<OptionKind(const std::string&)>& kind_of,
                       std::span<const std::string> known);

}  // namespace tutti::launch
