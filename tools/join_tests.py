#!/usr/bin/env python3
# join_tests.py: writes one C++ source with the tests of several files: join_tests.py LIST TO, where LIST names a file per line.
# SPDX-License-Identifier: Apache-2.0
"""Each file's anonymous namespace gets one more inside it, with the file's name: the files may use the same names for their
helpers, and what nobody uses there is still a warning."""
import os
import pathlib
import sys

OPEN = "\nnamespace {\n"
CLOSE = "\n}  // namespace\n"


def joined(path, text):
    if text.count(OPEN) != 1 or text.count(CLOSE) != 1:
        sys.exit(f"{path}: one anonymous namespace is expected, opened by a line 'namespace {{' and closed by '}}  // namespace'")
    text = text.replace(OPEN, f"\nnamespace {{ namespace {path.stem}_file {{\n").replace(CLOSE, "\n}}  // namespace\n")
    # As the compiler is run in this folder, too: what it remembers, and what its cache compares, does not depend on where the sources lie.
    return f'#line 1 "{os.path.relpath(path)}"\n{text}'


def main(listed, to):
    paths = map(pathlib.Path, pathlib.Path(listed).read_text().split())
    pathlib.Path(to).write_text("".join(joined(path, path.read_text()) for path in paths))


if __name__ == "__main__":
    main(*sys.argv[1:])
