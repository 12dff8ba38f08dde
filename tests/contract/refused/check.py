#!/usr/bin/env python3
# check.py: compiles a file of wrong uses and checks that each gets its one line of error: check.py FILE COMPILER…
# SPDX-License-Identifier: Apache-2.0
"""A wrong use ends with `// error: TEXT`. All are compiled at once; an error belongs to the line of the file that its notes
name: g++ writes them before the error, clang++ after it."""
import os
import pathlib
import re
import subprocess
import sys

WANTED = re.compile(r"// error: (.*)$")


def errors_by_line(output, file):
    """[(line of `file` or None, the compiler's line)]"""
    here = re.compile(rf"{re.escape(file)}:(\d+):\d+:")
    found, before, current = [], None, None
    for line in output.splitlines():
        place = here.match(line)
        if re.match(r"\S+:\d+:\d+: (fatal )?error: ", line):
            own = int(place[1]) if place else before
            found.append([own, line])
            current, before = found[-1], None
        elif place and ("required from here" in line or "required from" in line or "In instantiation" in line):
            before = int(place[1])
        elif place and "note: in instantiation" in line and current is not None and current[0] is None:
            current[0] = int(place[1])
    return found


def main(file, *command):
    lines = pathlib.Path(file).read_text().splitlines()
    wanted = {number: match[1] for number, line in enumerate(lines, 1) if (match := WANTED.search(line))}
    done = subprocess.run([*command, "-ferror-limit=0" if "clang" in command[0] else "-fmax-errors=0", file],
                          capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    got = {}
    for number, text in errors_by_line(done.stderr, file):
        got.setdefault(number, []).append(text)
    wrong = []
    for number, text in wanted.items():
        said = got.pop(number, [])
        if len(said) != 1 or not re.search(text, said[0]):
            wrong.append(f"line {number}: {lines[number - 1].strip()}\n  should give one error: {text}\n  gives {len(said)}:")
            wrong += [f"    {line}" for line in said]
    for number, said in got.items():
        wrong.append(f"line {number} should compile:" + "".join(f"\n    {line}" for line in said))
    print("\n".join(wrong) or f"{len(wanted)} wrong uses, {len(wanted)} lines that say what to write")
    return 1 if wrong or not wanted else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
