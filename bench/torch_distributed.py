# torch_distributed.py: what torch.distributed's blocking calls cost on the backend tutti, in C++ and as a class of Python, and on gloo.
# SPDX-License-Identifier: Apache-2.0
"""tuttirun -n 2 --no-prefix python bench/torch_distributed.py [cpp python gloo]

Two floats, on the CPU. Backends take turns, in processes of their own: which part of Tutti's serves a group is decided once for a process.
Prints the median and the least of short stretches, in microseconds per call, of rank 0."""

import os
import statistics
import subprocess
import sys
import time

CALLS, STRETCHES, TURNS = 1000, 9, 3


def stretch(call, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls * 1e6


def measure(backend):
    import torch
    import torch.distributed as dist

    import tutti.torch  # noqa: F401

    dist.init_process_group(backend)
    size = dist.get_world_size()
    x, every = torch.ones(2), torch.ones(2 * size)
    calls = {
        "all_reduce": lambda: dist.all_reduce(x),
        "broadcast": lambda: dist.broadcast(x, 0),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(every, x),
        "all_reduce, async_op, wait": lambda: dist.all_reduce(x, async_op=True).wait(),
    }
    for name, call in calls.items():
        count = CALLS if backend == "tutti" else CALLS // 10
        stretch(call, count)
        found = [stretch(call, count) for _ in range(STRETCHES)]
        if dist.get_rank() == 0:
            print(f"RESULT {name}|{statistics.median(found):.2f}|{min(found):.2f}", flush=True)
    dist.destroy_process_group()


def main(kinds):
    results = {}
    for turn in range(TURNS):
        for kind in kinds:
            environment = os.environ | {"TUTTI_TORCH_BACKEND": kind if kind != "gloo" else "python", "BENCH_KIND": kind}
            # Every turn's ranks meet at another port.
            environment["MASTER_PORT"] = str(int(environment.get("MASTER_PORT", "29500")) + 1 + turn * len(kinds) + kinds.index(kind))
            ran = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True)
            if ran.returncode:
                sys.exit(ran.stderr)
            for line in ran.stdout.splitlines():
                if line.startswith("RESULT "):
                    name, median, least = line.removeprefix("RESULT ").split("|")
                    results.setdefault((name, kind), []).append((float(median), float(least)))
    for (name, kind), found in sorted(results.items()):
        print(f"{name:28} {kind:7} median {statistics.median(m for m, _ in found):7.2f}  least {min(l for _, l in found):7.2f}")


if __name__ == "__main__":
    if "BENCH_KIND" in os.environ:
        measure("gloo" if os.environ["BENCH_KIND"] == "gloo" else "tutti")
    else:
        main(sys.argv[1:] or ["cpp", "python", "gloo"])
