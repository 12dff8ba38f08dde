# compare_pages.py: what a page shows under `$ tutti …` is what the program prints.
# SPDX-License-Identifier: Apache-2.0
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys


def shown_in(text):
    """Pairs of command and output, from fenced blocks that begin with `$ tutti`."""
    for block in re.findall(r"^```\n\$ (tutti .*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        command, _, output = block.partition("\n")
        yield command, output


def headings(output):
    """Of a page about this machine: the first words of its parts."""
    return "".join(line.split()[0] + "\n" for line in output.splitlines() if line and not line.startswith(" "))


def main(program, page):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TUTTI_")} | {"NO_COLOR": "1"}
    shown = list(shown_in(pathlib.Path(page).read_text(encoding="utf-8")))
    different = 0
    for command, output in shown:
        words = shlex.split(command)[1:]
        done = subprocess.run([program, *words], env=environment, capture_output=True, text=True, timeout=60, check=False)
        printed, status = (done.stdout, 0) if done.stdout else (done.stderr, 2)
        if words == ["doctor"]:
            printed, output = headings(printed), headings(output)
        if printed != output or done.returncode != status:
            different += 1
            print(f"{command}: status {done.returncode}")
            print("".join(difflib.unified_diff(output.splitlines(True), printed.splitlines(True), page, command)))
    print(f"{len(shown)} pages compared, {different} differ")
    return 1 if different or not shown else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
