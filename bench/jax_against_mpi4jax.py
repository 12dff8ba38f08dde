# jax_against_mpi4jax.py: collectives, halo exchange and conjugate gradients in compiled JAX programs, beside mpi4jax.
# SPDX-License-Identifier: Apache-2.0
"""python bench/jax_against_mpi4jax.py -n 2 --tuttirun build/release/src/launch/tuttirun --mpirun "mpirun
--oversubscribe"

Runs the same programs by turns under both launchers, so that a busy machine is busy for both, and prints the medians,
one JSON object per line. With --only tutti, mpi4jax need not be there."""

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
SIZES = (8, 4 << 10, 64 << 10, 1 << 20, 4 << 20)  # bytes
CALLS = {8: 2000, 4 << 10: 2000, 64 << 10: 500, 1 << 20: 50, 4 << 20: 20}


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


def seconds(program, barrier, *arguments):
    import jax

    jax.block_until_ready(program(*arguments))  # compiled, and warm
    barrier()
    begin = time.perf_counter()
    jax.block_until_ready(program(*arguments))
    return time.perf_counter() - begin


def measure(library):
    """One rank's part of one turn; rank 0 prints."""
    import jax
    import jax.numpy as jnp

    sys.path.insert(0, str(HERE.parent.parent / "examples" / "jax"))
    import conjugate_gradient as cg
    import shallow_water as water

    rank, size, sendrecv, total, barrier = tutti_verbs() if library == "tutti" else mpi_verbs()
    found = {}
    for size_bytes in SIZES:
        calls = CALLS[size_bytes]
        # Every call's input is new: a benchmark that never changes its buffers measures the cache.
        program = jax.jit(lambda x, calls=calls: jax.lax.fori_loop(0, calls, lambda _, x: total(x) * (1 / size), x))
        x = jnp.full((size_bytes // 4,), rank + 1.0, jnp.float32)
        found[f"all_reduce {size_bytes} B, us"] = seconds(program, barrier, x) / calls * 1e6
        around = {"dst": (rank + 1) % size, "src": (rank - 1) % size}
        program = jax.jit(lambda x, calls=calls: jax.lax.fori_loop(0, calls, lambda _, x: sendrecv(x, **around) + 1, x))
        found[f"sendrecv {size_bytes} B, us"] = seconds(program, barrier, x) / calls * 1e6
    x = jnp.ones(2, jnp.float32)
    for name, single in (("all_reduce 8 B", jax.jit(total)), ("addition, without a call", jax.jit(lambda x: x + 1))):
        time_ = seconds(lambda single=single: [single(x) for _ in range(200)], barrier)
        found[f"a program of one {name}, us"] = time_ / 200 * 1e6
    for cells, steps in ((64, 500), (512, 50)):
        grid = water.RankGrid(rank, size)
        state = water.with_halo(grid.part_of(water.drop(cells, cells)))
        exchange = functools.partial(water.fill_halo, grid=grid, sendrecv=sendrecv)
        time_ = seconds(lambda state, s=steps, e=exchange: water.simulate(state, s, e), barrier, state)
        found[f"shallow water {cells}^2, us per step"] = time_ / steps * 1e6
    for cells in (64, 256):
        b = jnp.ones((cells // size, cells), jnp.float32)
        program = cg.solver(rank, size, 0.0, 200, sendrecv, total)
        if int(program(b)[1]) != 200:
            raise SystemExit(f"{library}: conjugate gradients ended early, and so did not compute what they should")
        found[f"conjugate gradients {cells}^2, us per round"] = seconds(program, barrier, b) / 200 * 1e6
    if rank == 0:
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
    for what in found[libraries[0]][0]:
        medians = {library: round(statistics.median(one[what] for one in found[library]), 2) for library in libraries}
        print(json.dumps({"what": what, "ranks": options.ranks, **medians}))


if __name__ == "__main__":
    main()
