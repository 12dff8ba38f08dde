#!/usr/bin/env python3
# python_overhead.py: what a call from Python costs: all_reduce of 8 bytes, beside the C++ loop and mpi4py.
# SPDX-License-Identifier: Apache-2.0
"""bench/python_overhead.py [--ranks 2] [--turns 7] [--json FILE]

The libraries take turns, so that a busy machine slows all of them; each turn measures stretches of calls, and the table
shows the median and the best of the turns. The array changes in every call."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
STRETCH = 5000


def stretches(loop, barrier, count=7):
    """Microseconds per call, of several stretches."""
    times = []
    for _ in range(count):
        barrier()
        began = time.perf_counter()
        loop(range(STRETCH))
        times.append((time.perf_counter() - began) / STRETCH * 1e6)
    return times


def tutti_rank(in_place):
    import numpy as np

    import tutti

    world = tutti.init()
    x, all_reduce = np.ones(1), tutti.all_reduce

    def loop(turns):
        for _ in turns:
            all_reduce(x, out=x)

    def loop_anew(turns):
        for _ in turns:
            all_reduce(x)

    times = stretches(loop if in_place else loop_anew, tutti.barrier)
    if world.rank == 0:
        print(json.dumps(times))


def mpi4py_rank(in_place):
    import numpy as np
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    x, reduce, here = np.ones(1), world.Allreduce, MPI.IN_PLACE

    def loop(turns):
        for _ in turns:
            reduce(here, x)

    def loop_anew(turns):
        for _ in turns:
            reduce(x, np.empty(1))

    times = stretches(loop if in_place else loop_anew, world.Barrier)
    if world.rank == 0:
        print(json.dumps(times))


def find(path):
    """A program of this checkout, or an installed one."""
    found = REPOSITORY / "build/release" / path
    return str(found) if found.exists() else shutil.which(pathlib.Path(path).name)


def run(command, environment):
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def native_turn(ranks, in_place, environment):
    """Microseconds per call of the C++ loop, as tutti bench has it."""
    with tempfile.TemporaryDirectory() as folder:
        report = f"{folder}/report.json"
        place = "--in-place" if in_place else "--out-of-place"
        run(
            [
                find("src/cli/tutti"),
                "bench",
                "all_reduce",
                "-n",
                str(ranks),
                "--sizes",
                "8",
                "--dtype",
                "float64",
                place,
                "--repeats",
                "1",
                "--json",
                report,
            ],
            environment,
        )
        return [json.loads(line)["us_median"] for line in pathlib.Path(report).read_text().splitlines()]


def measure(library, in_place, ranks, environment):
    if library == "C++ (tutti bench)":
        return native_turn(ranks, in_place, environment)
    name = "tutti" if library == "tutti" else "mpi4py"
    rank = [sys.executable, __file__, "--rank", name, *(["--in-place"] if in_place else [])]
    launcher = [find("src/launch/tuttirun"), "--no-prefix", "-n", str(ranks)]
    if name == "mpi4py":
        launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks)]
    return json.loads(run([*launcher, *rank], environment))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--rank", choices=["tutti", "mpi4py"], help=argparse.SUPPRESS)
    parser.add_argument("--in-place", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        return {"tutti": tutti_rank, "mpi4py": mpi4py_rank}[options.rank](options.in_place)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "OMP_NUM_THREADS": "1"}
    libraries = ["tutti", "C++ (tutti bench)", *(["mpi4py"] if shutil.which("mpirun") else [])]
    rows = [(library, in_place) for in_place in (True, False) for library in libraries]
    times = {row: [] for row in rows}
    for _ in range(options.turns):
        for row in rows:
            times[row] += measure(*row, options.ranks, environment)
    print(f"all_reduce of 8 bytes, {options.ranks} ranks, microseconds per call\n")
    print(f"| {'':18} | {'':12} | median |   best |\n|{'-' * 20}|{'-' * 14}|-------:|-------:|")
    lines = []
    for (library, in_place), found in times.items():
        place = "in place" if in_place else "new result"
        print(f"| {library:18} | {place:12} | {statistics.median(found):6.2f} | {min(found):6.2f} |")
        lines.append(
            {
                "verb": "all_reduce",
                "dtype": "float64",
                "bytes": 8,
                "ranks": options.ranks,
                "library": library,
                "in_place": in_place,
                "us_median": statistics.median(found),
                "us_best": min(found),
            }
        )
    if options.json:
        options.json.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
