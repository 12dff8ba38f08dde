# placed.py: what tutti.ray.run and tutti.dask.run promise, on a cluster that the shell script beside it has started.
# SPDX-License-Identifier: Apache-2.0
"""placed.py ray ADDRESS | dask ADDRESS"""
import os
import sys

import numpy as np

import tutti

kind, address = sys.argv[1:]


def work(step):
    world = tutti.init()
    print("rank", world.rank, "of", world.size)
    return os.getpid(), tutti.all_reduce(np.full(3, float(world.rank * step)))


def fail_on_one(rank):
    world = tutti.init()
    tutti.barrier()
    if world.rank == rank:
        print("about to fail")
        raise ValueError("this rank's mistake")
    tutti.all_reduce(np.ones(1))


def die_on_one(rank):
    world = tutti.init()
    tutti.barrier()
    if world.rank == rank:
        os.kill(os.getpid(), 9)
    tutti.all_reduce(np.ones(1))


def start():
    if kind == "ray":
        import ray

        ray.init(address=address, log_to_driver=False)
        return lambda fn, ranks, **options: tutti.ray.run(fn, ranks, **options)
    import distributed

    client = distributed.Client(address)
    client.wait_for_workers(3, timeout=60)
    return lambda fn, ranks, **options: tutti.dask.run(client, fn, ranks, **options)


def check(condition, *what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")


run = start()
for size in (3, 2):  # the same workers again, in another number
    found = run(work, size, args=(10,))
    total = 10.0 * sum(range(size))
    check(len({pid for pid, _ in found}) == size and all((array == total).all() for _, array in found), found)

every = run(work, 2, args=(1,), results="all", output=False)
check([result.rank for result in every] == [0, 1] and [result.error for result in every] == [None, None], every)
check(every[1].log == "rank 1 of 2\n" and every[1].host, every[1])

try:
    run(fail_on_one, 3, args=(2,), output=False)
    check(False, "no error was raised")
except ValueError as error:
    notes = "\n".join(error.__notes__)
    check("raised on rank 2" in notes and "about to fail" in notes, notes)
    check("in fail_on_one" in str(error.__cause__), error.__cause__)
failed = run(fail_on_one, 3, args=(1,), output=False, results="all")
check([type(result.error).__name__ for result in failed][1] == "ValueError", failed)
check(all(isinstance(failed[rank].error, tutti.Error) for rank in (0, 2)), failed)

try:
    run(die_on_one, 3, args=(1,), output=False)
    check(False, "no error was raised")
except tutti.PeerLost as lost:
    check(lost.rank == 1 and "ended" in lost.reason, lost)

try:
    run(work, 1000, args=(1,), timeout=2)
    check(False, "there was room for 1000 ranks")
except (tutti.Timeout, tutti.InvalidArgument) as error:
    check("1000 ranks" in str(error), error)
print(f"{kind}: all well")
