#!/usr/bin/env python3
# run_cpp.py: runs the programs of tests/first_day/cpp, each on its ranks: run_cpp.py FIRST_DAY_PROGRAMS BACKEND [NAME …]
# SPDX-License-Identifier: Apache-2.0
"""Each program says at its end what it prints on all ranks together, in any order of lines, or with which line it ends on which
rank ("…" stands for anything)."""
import os
import pathlib
import re
import secrets
import socket
import subprocess
import sys

PROGRAMS = pathlib.Path(__file__).resolve().parent / "cpp"
SECONDS = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def matches(line, pattern):
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("…")), line, re.DOTALL)


def run_ranks(joined, name, ranks, backend):
    """[(what it printed, what it ended with)], one for each rank"""
    common = {**os.environ, "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(),
              "TUTTI_SECRET": secrets.token_hex(32), "TUTTI_BACKEND": backend}
    running = [subprocess.Popen([joined, name], env={**common, "RANK": str(rank)}, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE) for rank in range(ranks)]
    try:
        said = [each.communicate(timeout=SECONDS) for each in running]
    finally:
        for each in running:
            each.kill()
    errors = ["\n".join(line[7:] for line in err.splitlines() if line.startswith("error: ")) for _, err in said]
    return [(out.splitlines(), error, each.returncode) for (out, _), error, each in zip(said, errors, running)]


def what_is_wrong(joined, path, backend):
    text = path.read_text()
    ranks = int(re.search(r"^// ranks: (\d)$", text, re.MULTILINE)[1])
    printed = re.search(r"^// prints:\n((?://   .*\n)+)", text, re.MULTILINE)
    errors = dict(re.findall(r"^// raises on ([a-z0-9 ]+): (.*)$", text, re.MULTILINE))
    if not printed and not errors:
        return "it does not say what it does"
    outcomes = run_ranks(joined, path.stem, ranks, backend)
    for rank, (_, error, code) in enumerate(outcomes):
        wanted = errors.get(f"rank {rank}", errors.get("every rank"))
        if wanted is None and (error or code != 0):
            return f"rank {rank} ended with status {code}: {error}"
        if wanted is not None and not matches(error, wanted):
            return f"rank {rank} should have ended with: {wanted}\nit ended with: {error}"
    wanted = sorted(line[5:] for line in printed[1].splitlines()) if printed else []
    lines = sorted(line.rstrip() for said, *_ in outcomes for line in said)
    return "" if lines == wanted else f"it should have printed {wanted}\nit printed {lines}"


def main(joined, backend, *names):
    paths = [PROGRAMS / f"{name}.cpp" for name in names] or sorted(PROGRAMS.glob("*.cpp"))
    wrong = {path.stem: text for path in paths if (text := what_is_wrong(joined, path, backend))}
    for name, text in wrong.items():
        print(f"{name}: {text}")
    print(f"{len(paths) - len(wrong)} of {len(paths)} programs do what they say over {backend}")
    return 1 if wrong or len(paths) < (1 if names else 20) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
