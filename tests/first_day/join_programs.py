#!/usr/bin/env python3
# join_programs.py: writes one C++ source in which each program's main is a function of its own: join_programs.py TO PROGRAM…
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys


def main(to, *programs):
    programs = sorted(map(pathlib.Path, programs))
    headers = sorted({line for path in programs for line in re.findall(r"^#include <.*>$", path.read_text(), re.MULTILINE)})
    # The headers come first, outside of every namespace: what a program includes then is there already.
    parts = [*headers, "#include <cstdio>", "#include <cstring>", "#include <exception>", ""]
    for path in programs:
        text = path.read_text().replace("int main() {", "void run() {")  # only main may do without a return
        parts += [f"namespace {path.stem} {{", f'#line 1 "{path}"', text, "}"]
    parts += ["int main(int count, char** arguments) try {"]
    parts += [f'  if (count > 1 && std::strcmp(arguments[1], "{path.stem}") == 0) return {path.stem}::run(), 0;' for path in programs]
    parts += ["  return 2;", "} catch (const std::exception& error) {", r'  std::fprintf(stderr, "error: %s\n", error.what());',
              "  return 1;", "}", ""]
    pathlib.Path(to).write_text("\n".join(parts))


if __name__ == "__main__":
    main(*sys.argv[1:])
