#!/usr/bin/env python3
# docs_pages.py: copies the programs of examples/ into the pages that show them, and says which pages are behind.
# SPDX-License-Identifier: Apache-2.0
"""tools/docs_pages.py            what differs; the status is 1 if something does
tools/docs_pages.py --write    copies the programs into the pages

A page shows a program in the block behind a line `<!-- program: examples/tutorial/messages.py -->`. If a block without a
language follows, it is what the program prints on 2 ranks (tests/python/alone/test_tutorial.py)."""
import pathlib
import re
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
MARK = re.compile(r"^<!-- program: (\S+) -->\n```(\w+)\n(.*?)^```\n(?:```\n(.*?)^```\n)?", flags=re.MULTILINE | re.DOTALL)


def pages() -> list[pathlib.Path]:
    return sorted([REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")])


def shown(program: str) -> str:
    """A program without the line of its licence."""
    lines = (REPOSITORY / program).read_text().splitlines(keepends=True)
    return "".join(line for line in lines if "SPDX-License-Identifier" not in line)


def filled(text: str) -> str:
    def fill(match: re.Match) -> str:
        program, language, _, printed = match.groups()
        block = f"<!-- program: {program} -->\n```{language}\n{shown(program)}```\n"
        return block if printed is None else f"{block}```\n{printed}```\n"

    return MARK.sub(fill, text)


def programs(text: str) -> list[tuple[str, str | None]]:
    """The programs that a page shows, each with what it prints, if the page tells."""
    return [(program, printed) for program, _, _, printed in MARK.findall(text)]


def main(words: list[str]) -> int:
    behind = 0
    for page in pages():
        text = page.read_text()
        if filled(text) == text:
            continue
        behind = 1
        if words == ["--write"]:
            page.write_text(filled(text))
        print(f"{page.relative_to(REPOSITORY)}: {'written' if words else 'shows another program than examples/ has; tools/docs_pages.py --write'}")
    return 0 if words == ["--write"] else behind


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
