# jax_against_mpi4jax.py: collectives, halo exchange and conjugate gradients in compiled JAX programs, beside mpi4jax.
# SPDX-License-Identifier: Apache-2.0
"""python bench/jax_against_mpi4jax.py -n 2 --tuttirun build/release/src/launch/tuttirun --mpirun "mpirun
--oversubscribe"

Runs the same programs by turns under both launchers, so that a busy machine is busy for both. Each figure of a turn is
the least of many short runs, each printed one the median of the turns. Prints a table; --json FILE writes one JSON
object per line. With --only tutti, mpi4jax need not be there."""

import argparse
import functools
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve()
SIZES = (8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20)  # bytes
RUNS, RUN_SECONDS = 21, 0.004  # of one program


def tutti_verbs():
    import tutti

    world = tutti.init()
    return world.rank, world.size, tutti.sendrecv, tutti.all_reduce, tutti.barrier


def mpi_verbs():
    import mpi4jax
    from mpi4py import MPI

    world = MPI.COMM_WORLD

    def sendrecv(x, dst, src):
        source, destination = (MPI.PROC_NULL if peer is None else peer for peer in (src, dst))
        arrived = mpi4jax.sendrecv(x, x, source, destination, comm=world)
        return x * 0 if src is None else arrived  # from nobody nothing arrives, and the memory is as it was found

    return world.rank, world.size, sendrecv, functools.partial(mpi4jax.allreduce, op=MPI.SUM, comm=world), world.barrier


def micros(program, barrier, calls, *arguments):
    """Of one of the program's calls: the least of many runs."""
    import jax

    jax.block_until_ready(program(*arguments))  # compiled, and warm
    found = []
    for _ in range(RUNS):
        barrier()
        begin = time.perf_counter()
        jax.block_until_ready(program(*arguments))
        found.append(time.perf_counter() - begin)
    return min(found) / calls * 1e6


def calls_for(size_bytes):
    """How many calls of that size make a run of about RUN_SECONDS: the same on every rank."""
    return max(4, int(RUN_SECONDS / (2e-6 + size_bytes * 5e-10)))


def measure_verbs(rank, size, sendrecv, total, barrier):
    """By name: microseconds per call, in a loop of a compiled program. Every call's input is new: a benchmark that never
    changes its buffers measures the cache."""
    import jax
    import jax.numpy as jnp

    after, before = (rank + 1) % size, (rank - 1) % size
    bodies = {
        "all_reduce": lambda x: total(x) * (1 / size),
        "sendrecv": lambda x: sendrecv(x, after, before) + 1,
        "halo exchange": lambda x: (x + sendrecv(x, after, before) + sendrecv(x, before, after)) * (1 / 3),
    }
    found = {}
    for name, body in bodies.items():
        for size_bytes in SIZES:
            calls = calls_for(size_bytes)
            program = jax.jit(lambda x, n=calls, body=body: jax.lax.fori_loop(0, n, lambda _, x: body(x), x))
            x = jnp.full((size_bytes // 4,), rank + 1.0, jnp.float32)
            found[f"{name}, {size_bytes} B"] = micros(program, barrier, calls, x)
    return found


def measure_programs(rank, size, sendrecv, total, barrier):
    """By name: microseconds of whole programs, and of one step of those that simulate or solve."""
    import jax
    import jax.numpy as jnp

    sys.path.insert(0, str(HERE.parent.parent / "examples" / "jax"))
    import conjugate_gradient as cg
    import shallow_water as water

    found = {}
    x = jnp.ones(2, jnp.float32)
    for name, single in (("one all_reduce of 8 B", jax.jit(total)), ("one addition, no call", jax.jit(lambda x: x + 1))):
        found[f"a program of {name}"] = micros(lambda single=single: [single(x) for _ in range(200)], barrier, 200)
    for cells, steps in ((64, 100), (512, 10)):
        grid = water.RankGrid(rank, size)
        state = water.with_halo(grid.part_of(water.drop(cells, cells)))
        exchange = functools.partial(water.fill_halo, grid=grid, sendrecv=sendrecv)
        found[f"shallow water {cells}², a step"] = micros(
            lambda state, n=steps, e=exchange: water.simulate(state, n, e), barrier, steps, state
        )
    for cells in (64, 256):
        b = jnp.ones((cells // size, cells), jnp.float32)
        program = cg.solver(rank, size, 0.0, 200, sendrecv, total)
        if int(program(b)[1]) != 200:
            raise SystemExit("conjugate gradients ended early, and so did not compute what they should")
        found[f"conjugate gradients {cells}², a round"] = micros(program, barrier, 200, b)
    return found


def measure(library):
    """One rank's part of one turn; rank 0 prints."""
    verbs = tutti_verbs() if library == "tutti" else mpi_verbs()
    found = measure_verbs(*verbs) | measure_programs(*verbs)
    if verbs[0] == 0:
        print("RESULT " + json.dumps(found), flush=True)


def turn(library, command):
    environment = dict(os.environ, OMP_NUM_THREADS="1", JAX_PLATFORMS="cpu")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    for line in done.stdout.splitlines():
        if "RESULT " in line:
            return json.loads(line.split("RESULT ", 1)[1])
    raise SystemExit(f"{library} failed ({done.returncode}):\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("-n", "--ranks", type=int, default=2)
    arguments.add_argument("--turns", type=int, default=5)
    arguments.add_argument("--only", choices=("tutti", "mpi4jax"))
    arguments.add_argument("--tuttirun", default="tuttirun")
    arguments.add_argument("--mpirun", default="mpirun")
    arguments.add_argument("--python", default=sys.executable, help="one that has both libraries")
    arguments.add_argument("--json", type=pathlib.Path)
    arguments.add_argument("--measure", choices=("tutti", "mpi4jax"), help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.measure:
        return measure(options.measure)
    libraries = [options.only] if options.only else ["tutti", "mpi4jax"]
    launchers = {"tutti": options.tuttirun, "mpi4jax": options.mpirun}
    found = {library: [] for library in libraries}
    for _ in range(options.turns):
        for library in libraries:
            program = [options.python, str(HERE), "--measure", library]
            found[library].append(turn(library, [*shlex.split(launchers[library]), "-n", str(options.ranks), *program]))
    rows = []
    for what in found[libraries[0]][0]:
        medians = {library: round(statistics.median(one[what] for one in found[library]), 2) for library in libraries}
        rows.append({"what": what, "ranks": options.ranks, **medians})
    print(f"| µs | {' | '.join(libraries)} | ratio |\n|---|{'--:|' * (len(libraries) + 1)}")
    for row in rows:
        ratio = f"{row['mpi4jax'] / row['tutti']:.2f}×" if len(libraries) == 2 else ""
        print(f"| {row['what']} | {' | '.join(str(row[library]) for library in libraries)} | {ratio} |")
    if options.json:
        options.json.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
