# zero_torch.py: ZeRO's stages in PyTorch: the same training, with less and less memory on each rank.
# SPDX-License-Identifier: Apache-2.0
import torch
from torch import nn

import tutti
import tutti.torch

world = tutti.init()


def train(stage):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64))
    optimizer = tutti.torch.ZeroOptimizer(model, torch.optim.AdamW, stage=stage, lr=1e-3)
    generator = torch.Generator().manual_seed(world.rank)
    for _ in range(3):
        x = torch.randn(16, 64, generator=generator)
        optimizer.zero_grad()
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
    return tutti.all_reduce(loss.detach(), op="mean"), optimizer.memory()


losses = []
for stage in (1, 2, 3):
    loss, memory = train(stage)
    losses.append(loss)
    if world.rank == 0:
        print(f"stage {stage}: bytes on rank 0:", {what: int(number) for what, number in memory.items()})
assert torch.allclose(losses[0], losses[1]) and torch.allclose(losses[0], losses[2])
