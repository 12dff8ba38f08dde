# training.py: DataParallel and ZeroOptimizer beside PyTorch's own on gloo: same model, data and ranks, in turns, in one run.
# SPDX-License-Identifier: Apache-2.0
"""tuttirun -n 2 python bench/training.py [--rounds 15] [--json FILE]

Time in communication is what a step with averaged gradients takes longer than the same step without, on this rank; the
steps of the libraries take turns, so that whatever else the machine does hits all of them."""
import argparse
import json
import os
import statistics
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

import tutti
import tutti.torch


def network(seed: int = 0) -> nn.Module:
    """About 5 million parameters in 26 tensors, 20 MB of gradients."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = [nn.Linear(256, 640), nn.GELU()]
    for _ in range(11):
        layers += [nn.Linear(640, 640), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(640, 10))


def steps_of(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor):
    def step() -> float:
        begin = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        return time.perf_counter() - begin

    return step


def contenders(rank: int, size: int) -> dict:
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    random = torch.Generator().manual_seed(rank)
    x, y = torch.randn(32, 256, generator=random), torch.randint(0, 10, (32,), generator=random)
    made = {}

    def add(name, model, optimizer):
        made[name] = steps_of(model, optimizer, x, y)

    alone = network()
    add("no communication", alone, torch.optim.AdamW(alone.parameters(), 1e-3))
    ours = tutti.torch.DataParallel(network())
    add("tutti DataParallel", ours, torch.optim.AdamW(ours.parameters(), 1e-3))
    theirs = DistributedDataParallel(network(), gradient_as_bucket_view=True)
    add("torch DDP, gloo", theirs, torch.optim.AdamW(theirs.parameters(), 1e-3))
    zero = network()
    add("tutti ZeroOptimizer 2", zero, tutti.torch.ZeroOptimizer(zero, torch.optim.AdamW, stage=2, lr=1e-3))
    stage1 = tutti.torch.DataParallel(network())
    add("tutti ZeroOptimizer 1", stage1, tutti.torch.ZeroOptimizer(stage1.parameters(), torch.optim.AdamW, stage=1, lr=1e-3))
    redundant = DistributedDataParallel(network(), gradient_as_bucket_view=True)
    add("torch ZeroRedundancyOptimizer, gloo", redundant,
        ZeroRedundancyOptimizer(redundant.parameters(), torch.optim.AdamW, lr=1e-3))
    return made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    o = parser.parse_args()
    world = tutti.init()
    torch.set_num_threads(1)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    store_file = tutti.broadcast_object(f"/tmp/tutti-bench-{os.getpid()}" if world.rank == 0 else None)
    dist.init_process_group("gloo", init_method=f"file://{store_file}", rank=world.rank, world_size=world.size)
    steps = contenders(world.rank, world.size)
    times = {name: [] for name in steps}
    for round_ in range(o.rounds + 3):
        for name, step in steps.items():
            tutti.barrier()
            spent = step()
            if round_ >= 3:
                times[name].append(spent)
    slowest = {name: tutti.all_reduce(statistics.median(spent), op="max") for name, spent in times.items()}
    base = slowest["no communication"]
    if world.rank == 0:
        print(f"{world.size} ranks, {sum(p.numel() for p in network().parameters()) * 4 / 1e6:.0f} MB of gradients, "
              f"median of {o.rounds} steps, the slowest rank's")
        for name, seconds in slowest.items():
            print(f"{name:38} {seconds * 1e3:8.2f} ms a step {(float(seconds) - float(base)) * 1e3:8.2f} ms of it in communication")
        if o.json:
            lines = [{"name": n, "ranks": world.size, "ms_median": float(s) * 1e3} for n, s in slowest.items()]
            o.json.write_text("".join(json.dumps(line) + "\n" for line in lines))
    dist.destroy_process_group()
    tutti.finalize()
    if world.rank == 0:
        Path(store_file).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
