# run.py: runs the programs of tests/first_day/python, each on its ranks, and says which did not do what they should.
# SPDX-License-Identifier: Apache-2.0
"""`python run.py [--json] [NAME …]`, with TUTTI_BACKEND=shm or native.

Each program says at its end what it prints on all ranks together, in any order of lines, or with which line it ends on
which rank ("…" stands for anything). Programs are forked from this process, which has the frameworks imported already:
starting Python anew for each rank would take most of the time."""
import argparse
import contextlib
import io
import json
import pathlib
import re
import sys
import traceback

import tutti

PROGRAMS = pathlib.Path(__file__).resolve().parent / "python"
SECONDS = 40


def expectations_of(text):
    """(ranks, lines printed or None, error by rank, "every rank", or "some rank": which one is a matter of time)"""
    ranks = int(re.search(r"^# ranks: (\d)$", text, re.MULTILINE)[1])
    printed = re.search(r"^# prints:\n((?:#   .*\n)+)", text, re.MULTILINE)
    lines = [line[4:] for line in printed[1].splitlines()] if printed else None
    return ranks, lines, dict(re.findall(r"^# raises on ([a-z0-9 ]+): (.*)$", text, re.MULTILINE))


def run_program(path):
    """On one rank: what it printed, the line that it ended with, if it ended with an error, and the error of leaving the
    job then: whatever a program does wrong, its ranks can leave."""
    said, error, leaving = io.StringIO(), None, None
    main = sys.modules["__main__"]
    main.__dict__["__file__"] = path
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(pathlib.Path(path).read_text(), path, "exec"), main.__dict__)
    except Exception as reason:
        error = "".join(traceback.format_exception_only(reason)).strip()
        try:
            tutti.finalize()
        except tutti.Error as reason:
            leaving = repr(reason)
    return said.getvalue().splitlines(), error, leaving


def matches(line, pattern):
    return line is not None and re.fullmatch(".*".join(re.escape(part) for part in pattern.split("…")), line, re.DOTALL)


def what_is_wrong(path):
    """Nothing, or a text for people."""
    ranks, printed, errors = expectations_of(path.read_text())
    outcomes = tutti.spawn(run_program, ranks, (str(path),), timeout=SECONDS, start_method="fork")
    on_some = errors.get("some rank")
    if on_some is not None and not any(matches(error, on_some) for _, error, _ in outcomes):
        return f"some rank should have ended with: {on_some}\nthey ended with: {[error for _, error, _ in outcomes]}"
    for rank, (_, error, leaving) in enumerate(outcomes):
        wanted = errors.get(f"rank {rank}", errors.get("every rank"))
        if wanted is None and error is not None and (printed is not None or not errors):
            return f"rank {rank} ended with: {error}"
        if wanted is not None and not matches(error, wanted):
            return f"rank {rank} should have ended with: {wanted}\nit ended with: {error}"
        if leaving is not None:
            return f"rank {rank} left the job with: {leaving}"
    lines = sorted(line for said, *_ in outcomes for line in said)
    if printed is not None and lines != sorted(printed):
        return "it should have printed:\n" + "\n".join(sorted(printed)) + "\nit printed:\n" + "\n".join(lines)
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one object: what is wrong, by program")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    paths = [PROGRAMS / f"{name}.py" for name in options.names] or sorted(PROGRAMS.glob("*.py"))
    if any("import torch" in path.read_text() for path in paths):
        with contextlib.suppress(ImportError):  # then its programs fail, by name
            import torch

            import tutti.torch

            torch.set_num_threads(1)
    wrong = {}
    for path in paths:
        try:
            wrong[path.stem] = what_is_wrong(path)
        except Exception as error:
            wrong[path.stem] = "".join(traceback.format_exception(error))
    if options.json:
        print(json.dumps(wrong))
        return 0
    for name, text in wrong.items():
        print(f"{name}: {text or 'as it should'}")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
