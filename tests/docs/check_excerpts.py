#!/usr/bin/env python3
# check_excerpts.py: what a page shows of a source file is in that file, word by word.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys


def main(page, *sources):
    text = "\n".join(pathlib.Path(source).read_text() for source in sources)
    blocks = re.findall(r"^```cpp\n(.*?)^```", pathlib.Path(page).read_text(), flags=re.MULTILINE | re.DOTALL)
    missing = [block for block in blocks if block not in text and "int main(" not in block]
    for block in missing:
        print(f"{page} shows what none of {', '.join(sources)} has:\n{block}", file=sys.stderr)
    if not blocks:
        sys.exit(f"{page} shows nothing")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
