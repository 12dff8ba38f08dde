#!/usr/bin/env python3
# extract.py: writes each C++ program shown in a page to a file; prints the files.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys


def programs_in(text):
    """The fenced C++ blocks that are whole programs; fragments without main are for reading."""
    blocks = re.findall(r"^```cpp\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return [block for block in blocks if "int main(" in block]


def main(folder, *pages):
    for page in map(pathlib.Path, pages):
        for number, program in enumerate(programs_in(page.read_text()), start=1):
            source = pathlib.Path(folder) / f"{page.stem.lower()}_{number}.cpp"
            if not source.exists() or source.read_text() != program:
                source.write_text(program)
            print(source)


if __name__ == "__main__":
    main(*sys.argv[1:])
