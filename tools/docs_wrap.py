#!/usr/bin/env python3
# docs_wrap.py: wraps the prose of pages at 120 columns. Programs, tables, headings and what they print stay as they are.
# SPDX-License-Identifier: Apache-2.0
"""tools/docs_wrap.py PAGE …: rewrites paragraphs and items that have a line of more than 120 columns."""
import argparse
import pathlib
import re
import textwrap

COLUMNS = 120
MARKER = re.compile(r" *(?:[-*]|\d+\.) +")
NO_PROSE = re.compile(r"\||#|>|<|!\[|    |\t|---")


def is_long(lines: list[str]) -> bool:
    return any(len(line) > COLUMNS for line in lines)


def wrapped(item: list[str]) -> list[str]:
    """A paragraph, or one item of a list."""
    marker = MARKER.match(item[0])
    first = marker[0] if marker else re.match(" *", item[0])[0]
    rest = " " * len(first)
    text = " ".join([item[0][len(first):], *(line.strip() for line in item[1:])])
    lines = textwrap.wrap(text, COLUMNS, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)
    # A line must not begin like an item, a heading or a table by accident.
    return item if any(re.match(r" *([-*+#>|]|\d+\.)\s", line) for line in lines[1:]) else lines


def wrap_block(block: list[str]) -> list[str]:
    if not is_long(block) or any(NO_PROSE.match(line) for line in block):
        return block
    items: list[list[str]] = []
    for line in block:
        if MARKER.match(line) or not items:
            items.append([line])
        else:
            items[-1].append(line)
    return [line for item in items for line in (wrapped(item) if is_long(item) else item)]


def wrap_page(text: str) -> str:
    lines, block, in_program = [], [], False
    for line in [*text.split("\n"), None]:
        ends_block = line is None or in_program or not line.strip() or line.startswith("|") or line.lstrip().startswith("```")
        if not ends_block:
            block.append(line)
            continue
        lines += wrap_block(block)
        block = []
        if line is not None:
            in_program ^= line.lstrip().startswith("```")
            lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", type=pathlib.Path, nargs="+")
    for page in parser.parse_args().pages:
        page.write_text(wrap_page(page.read_text()))
