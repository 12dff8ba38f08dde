// words.cpp: splits the command line; torchrun's spelling, unknown options, options that torchrun has and we do not.
// SPDX-License-Identifier: Apache-2.0
#include "launch/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "launch/options.hpp"
#include "launch/suggest.hpp"

namespace tutti::launch {
namespace {

struct Refused {
  std::string_view option;
  std::string_view reason;
};

// Ignoring them would be a lie.
constexpr std::array refused = {
    Refused{"--rdzv-backend", "ranks meet at tuttirun's own store; leave it out"},
    Refused{"--rdzv-endpoint",
            "ranks meet at tuttirun's own store; on several nodes give --master-addr and --master-port"},
    Refused{"--rdzv-id", "every start has an id of its own; leave it out"},
    Refused{"--rdzv-conf", "ranks meet at tuttirun's own store; leave it out"},
    Refused{"--max-restarts", "use --restarts"},
    Refused{"--monitor-interval", "tuttirun learns of a rank's end at once; leave it out"},
    Refused{"--start-method", "ranks are programs of their own; leave it out"},
    Refused{"--redirects", "use --log-dir"},
    Refused{"--role", "there are no roles; leave it out"},
    Refused{"--local-addr", "the variable TUTTI_INTERFACE chooses the network"},
    Refused{"--local-ranks-filter", "use --log-dir or --quiet"},
};

[[noreturn]] void refuse(const std::string& name, std::span<const std::string> known) {
  for (const Refused& row : refused) {
    if (row.option == name) throw UsageError(fmt::format("torchrun's {} has no meaning here: {}", name, row.reason));
  }
  throw UsageError(fmt::format("there is no option {}{}", name, did_you_mean(name, known)));
}

std::string with_dashes(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

struct Word {
  std::string name;
  std::string value;
  bool has_value = false;
};

Word read_word(const std::string& word) {
  if (word.starts_with("--")) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return {.name = with_dashes(word)};
    return {.name = with_dashes(word.substr(0, equals)), .value = word.substr(equals + 1), .has_value = true};
  }
  return {.name = word.substr(0, 2), .value = word.substr(2), .has_value = word.size() > 2};
}

}  // namespace

SplitWords split_words(std::span<const std::string> words, const std::function<OptionKind(const std::string&)>& kind_of,
                       std::span<const std::string> known) {
  SplitWords split;
  std::size_t next = 0;
  while (next < words.size() && words[next].starts_with('-') && words[next] != "-") {
    const std::string& word = words[next++];
    if (word == "--") break;
    Word option = read_word(word);
    const bool is_long = word.starts_with("--");
    const OptionKind kind = kind_of(option.name);
    if (kind == OptionKind::unknown) refuse(option.name, known);
    if (kind == OptionKind::flag) {
      if (option.has_value && !is_long) refuse(word, known);
      if (option.has_value) throw UsageError(fmt::format("{} takes no value", option.name));
      split.options.push_back(option.name);
      continue;
    }
    if (!option.has_value) {
      if (next == words.size())
        throw UsageError(fmt::format("{} needs a value; --help lists what it takes", option.name));
      option.value = words[next++];
    }
    split.options.push_back(option.name + (is_long ? "=" : "") + option.value);
  }
  split.program.assign(words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
  return split;
}

}  // namespace tutti::launch
