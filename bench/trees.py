# trees.py: a tree of arrays in one call, beside one call for each of its arrays, in every framework.
# SPDX-License-Identifier: Apache-2.0
"""python bench/trees.py -n 2 --tuttirun build/release/src/launch/tuttirun

Measures all_reduce and average of lists of equal arrays, and average of the gradients of a small model, by turns with
the same arrays one by one, so that a busy machine is busy for both. Prints a table of medians over short stretches, in
microseconds, and how many times as fast (by the least of them); --json FILE writes them one JSON object per line."""

import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve()
FRAMEWORKS = ("numpy", "torch", "jax", "tensorflow")
LISTS = ((2, 2), (2, 50), (10, 50), (100, 50), (2, 1000), (10, 1000), (20, 4000), (4, 30_000), (2, 100_000), (20, 100_000))
# Weights and biases of an encoder of four layers, 64 wide.
LAYER = [(192, 64), (192,), (64, 64), (64,), (256, 64), (256,), (64, 256), (64,), (64,), (64,), (64,), (64,)]
MODEL = LAYER * 4
# Shorter than a time slice: on a busy machine some stretches have both cores to themselves.
STRETCH_SECONDS, STRETCHES = 0.0005, 201


def makers():
    """By framework: a new array of ones."""

    def numpy_ones(shape):
        import numpy

        return numpy.ones(shape, numpy.float32)

    def torch_ones(shape):
        import torch

        return torch.ones(shape)

    def jax_ones(shape):
        import jax.numpy

        return jax.numpy.ones(shape, jax.numpy.float32)

    def tensorflow_ones(shape):
        import tensorflow

        return tensorflow.ones(shape)

    return dict(zip(FRAMEWORKS, (numpy_ones, torch_ones, jax_ones, tensorflow_ones), strict=True))


def stretch(run, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - begin) / calls * 1e6


def by_turns(runs, barrier, agree):
    """Microseconds per call of each function: [median, least]."""
    calls = {}
    for name, run in runs.items():
        run()
        barrier()
        calls[name] = agree(max(1, int(STRETCH_SECONDS * 1e6 / stretch(run, 3))))
    times = {name: [] for name in runs}
    for _ in range(STRETCHES):
        for name, run in runs.items():
            barrier()
            times[name].append(stretch(run, calls[name]))
    return {name: [statistics.median(found), min(found)] for name, found in times.items()}


def measure(framework):
    """One rank's part; rank 0 prints."""
    import tutti

    world = tutti.init()
    make = makers()[framework]

    def agree(calls):
        return int(tutti.all_reduce(calls, op="min"))

    cases = [(f"{count} × {length}", [(length,)] * count) for count, length in LISTS]
    cases.append((f"a model of {len(MODEL)} arrays", MODEL))
    for name, shapes in cases:
        arrays = [make(shape) for shape in shapes]
        runs = {
            "all_reduce": lambda arrays=arrays: tutti.all_reduce(arrays),
            "one by one": lambda arrays=arrays: [tutti.all_reduce(x) for x in arrays],
            "average": lambda arrays=arrays: tutti.average(arrays),
            "averages": lambda arrays=arrays: [tutti.average(x) for x in arrays],
        }
        times = by_turns(runs, tutti.barrier, agree)
        if world.rank == 0:
            print("RESULT " + json.dumps({"framework": framework, "arrays": name, "ranks": world.size, **times}), flush=True)


def results_of(framework, options):
    environment = dict(os.environ, OMP_NUM_THREADS="1", JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
    command = [*shlex.split(options.tuttirun), "--no-prefix", "-n", str(options.ranks), sys.executable, str(HERE)]
    done = subprocess.run(
        [*command, "--measure", framework], env=environment, capture_output=True, text=True, timeout=600
    )
    found = [json.loads(line.split("RESULT ", 1)[1]) for line in done.stdout.splitlines() if "RESULT " in line]
    if done.returncode != 0 or not found:
        raise SystemExit(f"{framework} failed ({done.returncode}):\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return found


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("-n", "--ranks", type=int, default=2)
    arguments.add_argument("--tuttirun", default="tuttirun")
    arguments.add_argument("--only", choices=FRAMEWORKS, nargs="*", default=FRAMEWORKS)
    arguments.add_argument("--json", type=pathlib.Path)
    arguments.add_argument("--measure", choices=FRAMEWORKS, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.measure:
        return measure(options.measure)
    lines = [line for framework in options.only for line in results_of(framework, options)]
    print("| framework | arrays | all_reduce one by one, µs | together | | average one by one | together | |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for line in lines:
        cells = []
        for singly, together in (("one by one", "all_reduce"), ("averages", "average")):
            one, many = line[singly], line[together]
            cells.append(f"{one[0]:.1f} | {many[0]:.1f} | {one[0] / many[0]:.1f}× ({one[1] / many[1]:.1f}×)")
        print(f"| {line['framework']} | {line['arrays']} | {' | '.join(cells)} |")
    if options.json:
        options.json.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
