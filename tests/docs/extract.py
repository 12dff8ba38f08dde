#!/usr/bin/env python3
# extract.py: finds the programs shown in pages; writes each C++ program to a file and prints the files.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys


def programs_in(text, language):
    """The fenced blocks that are whole programs: C++ with main, Python that begins with an import. Others are for reading."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    if language == "cpp":
        return [block for block in blocks if "int main(" in block]
    return [block for block in blocks if block.startswith(("import ", "from "))]


def name_of(page):
    """Of pages in folders of docs/ with the folder: tutorial_3_ring."""
    folder = page.parent.name
    return f"{folder}_{page.stem}".lower() if folder in ("tutorial", "guides") else page.stem.lower()


def main(folder, *pages):
    for page in map(pathlib.Path, pages):
        for number, program in enumerate(programs_in(page.read_text(), "cpp"), start=1):
            source = pathlib.Path(folder) / f"{name_of(page)}_{number}.cpp"
            if not source.exists() or source.read_text() != program:
                source.write_text(program)
            print(source)


if __name__ == "__main__":
    main(*sys.argv[1:])
