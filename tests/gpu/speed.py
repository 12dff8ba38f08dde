# speed.py: how long calls on tensors of a GPU take. A rank of a job: run.py starts it.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
import time

import torch

import tutti

SIZES = (8, 1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 28)


def median_us(call, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2] * 1e6


def main() -> None:
    world = tutti.init()
    torch.cuda.set_device(0)
    for verb in sys.argv[1:] or ("all_reduce",):
        for nbytes in SIZES:
            x = torch.ones(nbytes // 4, device="cuda")
            out = torch.empty_like(x) if verb in ("all_reduce", "broadcast") else None
            run = getattr(tutti, verb)
            call = (lambda: run(x, out=out)) if out is not None else (lambda: run(x))
            for _ in range(5):
                call()
            torch.cuda.synchronize()
            tutti.barrier()
            took = median_us(call, 200 if nbytes <= 1 << 20 else 20)
            if world.rank == 0:
                print(f"{verb} {world.size} processes {nbytes} B: {took:.1f} us", flush=True)


main()
