# training.py: a small GPT, trained in every way that Tutti has: the losses of one process.
# SPDX-License-Identifier: Apache-2.0
"""A rank of a job: run.py starts it. TUTTI_TEST_DEVICE=cpu: the same without a GPU."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.nn import functional as F

import tutti
import tutti.torch
from tutti.torch.compression import PowerSgd

DEVICE = torch.device(os.environ.get("TUTTI_TEST_DEVICE", "cuda:0"))
LEARNING = {"lr": 0.1, "momentum": 0.9}
STEPS, BATCH, LENGTH, WORDS, WIDTH = 12, 16, 32, 64, 64


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.qkv(self.first(x)).chunk(3, -1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.out(attended)
        return x + self.down(F.gelu(self.up(self.second(x))))


def model() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Embedding(WORDS, WIDTH), Block(), Block(), torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, WORDS)
    ).to(DEVICE)


def trained(
    net: torch.nn.Module,
    mine: slice,
    average: Callable | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    loss_of: Callable = F.cross_entropy,
) -> torch.Tensor:
    """The loss of every step, on this rank's part of each batch."""
    optimizer = optimizer or torch.optim.SGD(net.parameters(), **LEARNING)
    data = torch.Generator().manual_seed(2)
    losses = []
    for _ in range(STEPS):
        words = torch.randint(0, WORDS, (BATCH, LENGTH + 1), generator=data)[mine].to(DEVICE)
        loss = loss_of(net(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if average is not None:
            average(net)
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def average_gradients(net: torch.nn.Module) -> None:
    gradients = [parameter.grad for parameter in net.parameters()]
    for parameter, mean in zip(net.parameters(), tutti.average(gradients, group=tutti.torch.group_of()), strict=True):
        parameter.grad = mean


def by_zero(stage: int, mine: slice) -> torch.Tensor:
    net = model()
    optimizer = tutti.torch.ZeroOptimizer(net, torch.optim.SGD, stage=stage, group=tutti.torch.group_of(), **LEARNING)
    return trained(net, mine, optimizer=optimizer)


def by_tensor_parallelism() -> torch.Tensor:
    """Every rank computes the whole batch's loss, with its parts of the weights."""
    group = tutti.torch.group_of()
    forms = {
        "0": "rows", "*.qkv": "columns", "*.out": "rows", "*.up": "columns, split", "*.down": "rows, split", "4": "columns, split",
    }
    net = tutti.torch.parallelize(model(), forms, group=group)

    def loss_of(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return tutti.torch.parallel_cross_entropy(logits, targets, classes=WORDS, group=group)

    return trained(net, slice(None), loss_of=loss_of)


def main() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    if DEVICE.type == "cuda":
        torch.cuda.set_device(DEVICE)
    dist.init_process_group("tutti")
    rank, size = dist.get_rank(), dist.get_world_size()
    share = BATCH // size
    mine = slice(rank * share, (rank + 1) * share)
    alone = trained(model(), slice(None))
    wrong = []

    def compare(name: str, losses: torch.Tensor, bound: float = 1e-3) -> None:
        dist.all_reduce(losses)
        worst = float((losses / size - alone).abs().max())
        if rank == 0:
            print(f"{name}: {size} processes, largest difference of a loss from one process's: {worst:.2e}", flush=True)
        if worst > bound or float(alone[-1]) >= float(alone[0]):
            wrong.append(name)

    compare("DistributedDataParallel", trained(torch.nn.parallel.DistributedDataParallel(model()), mine))
    compare("tutti.average", trained(model(), mine, average_gradients))
    parallel = tutti.torch.DataParallel
    compare("DataParallel", trained(parallel(model(), group=tutti.torch.group_of()), mine))
    for stage in (1, 2, 3):
        compare(f"ZeroOptimizer, stage {stage}", by_zero(stage, mine))
    compare("tensor parallel", by_tensor_parallelism())
    for name, hook in (("bf16", "bf16"), ("int8", "int8"), ("PowerSGD", PowerSgd(rank=8, start_step=4))):  # which round
        compare(f"DataParallel, {name}", trained(parallel(model(), group=tutti.torch.group_of(), hook=hook), mine), 0.05)
    dist.destroy_process_group()
    sys.exit(1 if wrong else 0)


main()
