// run.hpp: the entry point of the launcher: `tuttirun`, and `tutti run`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace tutti::launch {

// Everything from the words after the program's name to the exit status: 0, that of the first rank that failed
// (128 + signal), 2 for a mistake in the arguments. `name` is what messages call the program: "tuttirun", "tutti run".
//
//   run_main("tutti run", {texts + 2, texts + count})
//
// Blocks signals and becomes the subreaper of this process's descendants; the caller returns from main with the result.
int run_main(std::string_view name, std::span<char* const> words);

}  // namespace tutti::launch
