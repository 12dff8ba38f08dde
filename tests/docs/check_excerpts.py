#!/usr/bin/env python3
# check_excerpts.py: what a section of a page shows of source files is in them, word by word.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys


def main(page, section, *sources):
    begin = pathlib.Path(page).read_text().split(f"\n## {section}\n")[1]
    text = "\n".join(pathlib.Path(source).read_text() for source in sources)
    blocks = re.findall(r"^```cpp\n(.*?)^```", begin.split("\n## ")[0], flags=re.MULTILINE | re.DOTALL)
    missing = [block for block in blocks if block not in text]
    for block in missing:
        print(f"{page} shows what none of {', '.join(sources)} has:\n{block}", file=sys.stderr)
    if not blocks:
        sys.exit(f"{page} shows nothing")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
