# compare_pages.py: what a page shows under `$ tutti explain …` is what the program prints.
# SPDX-License-Identifier: Apache-2.0
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys


def shown_in(text):
    """Pairs of command and output, from fenced blocks that begin with `$ tutti explain`: they depend on no machine."""
    for block in re.findall(r"^```\n\$ (tutti explain .*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        command, _, output = block.partition("\n")
        yield command, output


def main(program, page):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TUTTI_")} | {"NO_COLOR": "1"}
    shown = list(shown_in(pathlib.Path(page).read_text(encoding="utf-8")))
    different = 0
    for command, output in shown:
        words = shlex.split(command)[1:]
        printed = subprocess.run([program, *words], env=environment, capture_output=True, text=True, timeout=60, check=True)
        if printed.stdout != output:
            different += 1
            print("".join(difflib.unified_diff(output.splitlines(True), printed.stdout.splitlines(True), page, command)))
    print(f"{len(shown)} pages compared, {different} differ")
    return 1 if different or not shown else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
