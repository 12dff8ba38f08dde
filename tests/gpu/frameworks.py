# frameworks.py: torch.distributed's collectives on tensors of a GPU, CuPy's arrays, and JAX's.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys

import numpy as np
import torch
import torch.distributed as dist

import tutti
import tutti.torch

wrong: list[str] = []


def expect(name: str, got, expected) -> None:
    if not np.array_equal(np.asarray(got), np.asarray(expected)):
        wrong.append(f"{name}: {got} is not {expected}")


def of_torch_distributed() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.full((5,), float(rank + 1), device="cuda")
    total = size * (size + 1) / 2
    dist.all_reduce(x)
    expect("all_reduce", x.cpu(), [total] * 5)
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    expect("all_reduce, asynchronous", x.cpu(), [total * size] * 5)
    parts = [torch.zeros(2, device="cuda") for _ in range(size)]
    dist.all_gather(parts, torch.full((2,), float(rank), device="cuda"))
    expect("all_gather", torch.stack(parts).cpu()[:, 0], range(size))
    whole = torch.zeros(3 * size, device="cuda")
    dist.all_gather_into_tensor(whole, torch.full((3,), float(rank), device="cuda"))
    expect("all_gather_into_tensor", whole.cpu()[::3], range(size))
    part = torch.zeros(2, device="cuda")
    dist.reduce_scatter_tensor(part, torch.arange(2.0 * size, device="cuda"))
    expect("reduce_scatter_tensor", part.cpu(), [2.0 * rank * size, (2.0 * rank + 1) * size])
    y = torch.full((4,), float(rank), device="cuda")
    dist.broadcast(y, src=size - 1)
    expect("broadcast", y.cpu(), [size - 1.0] * 4)
    got = torch.zeros(size, device="cuda")
    dist.all_to_all_single(got, torch.full((size,), float(rank), device="cuda"))
    expect("all_to_all_single", got.cpu(), range(size))
    if size > 1:
        message = torch.full((3,), 7.0, device="cuda") if rank == 0 else torch.zeros(3, device="cuda")
        if rank == 0:
            dist.send(message, 1)
        elif rank == 1:
            dist.recv(message, 0)
            expect("recv", message.cpu(), [7.0] * 3)
    objects: list = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    expect("all_gather_object", [o["rank"] for o in objects], range(size))
    dist.barrier()


def of_cupy(world) -> None:
    import cupy

    rank, size = world.rank, world.size
    x = cupy.arange(1000, dtype=cupy.float32) + rank
    y = tutti.all_reduce(x, group=world)
    expect("cupy: its kind", isinstance(y, cupy.ndarray), True)
    expect("cupy: all_reduce", cupy.asnumpy(y), np.arange(1000, dtype=np.float32) * size + size * (size - 1) / 2)
    with cupy.cuda.Stream(non_blocking=True):
        gathered = tutti.all_gather(x.reshape(10, 100)[:, ::2] * 2, group=world)
        expect("cupy: a strided all_gather on a stream of its own", gathered.shape, (10 * size, 50))
        expect("cupy: its elements", float(gathered[-1, -1]), 2 * (998.0 + size - 1))
    tutti.all_reduce(x, out=x, group=world)
    expect("cupy: in place", cupy.asnumpy(x), cupy.asnumpy(y))


def of_jax(world) -> None:
    import jax.numpy as jnp

    x = jnp.arange(100, dtype=jnp.float32) + world.rank
    y = tutti.all_reduce(x, group=world)
    expect("jax: where its result is", y.devices(), x.devices())
    total = np.arange(100, dtype=np.float32) * world.size + world.size * (world.size - 1) / 2
    expect("jax: all_reduce", y, total)


def main() -> None:
    torch.cuda.set_device(0)
    dist.init_process_group("tutti")
    world = tutti.torch.group_of()
    of_torch_distributed()
    for name, part in (("cupy", of_cupy), ("jax", of_jax)):
        try:
            __import__(name)
        except ImportError:
            if world.rank == 0:
                print(f"{name} is not installed", flush=True)
            continue
        part(world)
    for line in wrong:
        print(f"rank {world.rank}: {line}", flush=True)
    print(f"rank {world.rank}: {len(wrong)} wrong", flush=True)
    dist.destroy_process_group()
    sys.exit(1 if wrong else 0)


main()
