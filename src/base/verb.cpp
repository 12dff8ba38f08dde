// verb.cpp: verbs by name.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/verb.hpp>

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tutti/error.hpp>

namespace tutti {

// A verb may come from a peer's signature, so any value is possible.
std::string_view name_of(Verb verb) {
  return static_cast<std::size_t>(verb) < verb_table.size() ? traits_of(verb).name : "unknown verb";
}

Verb verb_from_name(std::string_view name) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < verb_table.size(); ++i) {
    if (verb_table[i].name == name) return static_cast<Verb>(i);
    names.push_back(verb_table[i].name);
  }
  throw InvalidArgument(fmt::format("\"{}\" is not a verb; the verbs are {}", name, fmt::join(names, ", ")));
}

}  // namespace tutti
