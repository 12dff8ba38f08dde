#!/usr/bin/env python3
# python_overhead.py: what a call from Python costs: all_reduce and a message of 8 bytes, beside the C++ loops and mpi4py.
# SPDX-License-Identifier: Apache-2.0
"""bench/python_overhead.py [--ranks 2] [--turns 7] [--json FILE]

The libraries take turns, so that a busy machine slows all of them; each turn measures stretches of calls, and the table
shows the median and the best of the turns. The array changes in every call. A message counts one way."""

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
KINDS = ["in place", "new result", "message"]


def stretches(loop, barrier, count=7):
    """Microseconds per call, of several stretches."""
    times = []
    for _ in range(count):
        barrier()
        began = time.perf_counter()
        loop(range(STRETCH))
        times.append((time.perf_counter() - began) / STRETCH * 1e6)
    return times


def ping_pong(rank, send, recv):
    """A loop of messages there or back."""

    def loop(turns):
        for turn in turns:
            (send if turn % 2 == rank else recv)()

    return loop


def tutti_rank(kind):
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

    other = 1 - world.rank
    messages = ping_pong(world.rank, lambda: tutti.send(x, other), lambda: tutti.recv(out=x, src=other))
    times = stretches({"in place": loop, "new result": loop_anew, "message": messages}[kind], tutti.barrier)
    if world.rank == 0:
        print(json.dumps(times))


def mpi4py_rank(kind):
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

    other = 1 - world.rank
    messages = ping_pong(world.rank, lambda: world.Send(x, other), lambda: world.Recv(x, other))
    times = stretches({"in place": loop, "new result": loop_anew, "message": messages}[kind], world.Barrier)
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


def native_turn(ranks, kind, environment):
    """Microseconds per call of the C++ loop, as tutti bench has it."""
    with tempfile.TemporaryDirectory() as folder:
        report = f"{folder}/report.json"
        place = "--in-place" if kind == "in place" else "--out-of-place"
        run(
            [
                find("src/cli/tutti"),
                "bench",
                "ping_pong" if kind == "message" else "all_reduce",
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


def measure(library, kind, ranks, environment):
    if library == "C++ (tutti bench)":
        return native_turn(ranks, kind, environment)
    name = "tutti" if library == "tutti" else "mpi4py"
    rank = [sys.executable, __file__, "--rank", name, "--kind", kind]
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
    parser.add_argument("--kind", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        return {"tutti": tutti_rank, "mpi4py": mpi4py_rank}[options.rank](options.kind)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "OMP_NUM_THREADS": "1"}
    libraries = ["tutti", "C++ (tutti bench)", *(["mpi4py"] if shutil.which("mpirun") else [])]
    kinds = KINDS if options.ranks == 2 else KINDS[:2]
    rows = [(library, kind) for kind in kinds for library in libraries]
    times = {row: [] for row in rows}
    for _ in range(options.turns):
        for row in rows:
            times[row] += measure(*row, options.ranks, environment)
    print(f"all_reduce and messages of 8 bytes, {options.ranks} ranks, microseconds per call\n")
    print(f"| {'':18} | {'':12} | median |   best |\n|{'-' * 20}|{'-' * 14}|-------:|-------:|")
    lines = []
    for (library, kind), found in times.items():
        print(f"| {library:18} | {kind:12} | {statistics.median(found):6.2f} | {min(found):6.2f} |")
        lines.append(
            {
                "verb": "send" if kind == "message" else "all_reduce",
                "dtype": "float64",
                "bytes": 8,
                "ranks": options.ranks,
                "library": library,
                "in_place": kind == "in place",
                "us_median": statistics.median(found),
                "us_best": min(found),
            }
        )
    if options.json:
        options.json.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
