# torch_calls.py: what a call on a torch tensor costs beside the same call on a NumPy array, without and with a graph.
# SPDX-License-Identifier: Apache-2.0
"""tuttirun -n 2 --no-prefix python bench/torch_calls.py

Two floats, every verb that takes an array, blocking, a new result. NumPy, torch without a graph and torch under autograd
(forward only) take turns, so that a busy machine is busy for all of them. Prints medians and the least of short
stretches, in microseconds."""

import statistics
import time

import numpy
import torch
import tutti

CALLS, TURNS = 1000, 25
SIZE = tutti.init().size
VERBS = {
    "all_reduce": tutti.all_reduce,
    "reduce": tutti.reduce,
    "broadcast": tutti.broadcast,
    "all_gather": tutti.all_gather,
    "reduce_scatter": tutti.reduce_scatter,
    "all_to_all": tutti.all_to_all,
    "scan": tutti.scan,
}


def stretch(verb, x):
    """Microseconds per call."""
    tutti.barrier()
    begin = time.perf_counter()
    for _ in range(CALLS):
        verb(x)
    return (time.perf_counter() - begin) / CALLS * 1e6


def main():
    arrays = {
        "NumPy": numpy.ones(SIZE, numpy.float32),
        "torch": torch.ones(SIZE),
        "under autograd": torch.ones(SIZE, requires_grad=True),
    }
    if tutti.world().rank == 0:
        print("| verb | NumPy, µs (least) | torch | under autograd | torch − NumPy | autograd − NumPy |\n|---|--:|--:|--:|--:|--:|")
    for name, verb in VERBS.items():
        times = {kind: [] for kind in arrays}
        for turn in range(TURNS + 1):
            for kind, x in arrays.items():
                micros = stretch(verb, x)
                if turn > 0:  # the first one warms up
                    times[kind].append(micros)
        medians = {kind: statistics.median(found) for kind, found in times.items()}
        cells = [f"{medians[kind]:.2f} ({min(times[kind]):.2f})" for kind in arrays]
        more = [f"{medians[kind] - medians['NumPy']:.2f}" for kind in ("torch", "under autograd")]
        if tutti.world().rank == 0:
            print(f"| {name} | {' | '.join(cells + more)} |", flush=True)


if __name__ == "__main__":
    main()
