# training_memory.py: bytes per rank in each stage of ZeRO: tuttirun -n 4 python bench/training_memory.py
# SPDX-License-Identifier: Apache-2.0
import torch
from torch import nn

import tutti
import tutti.torch

world = tutti.init()
rows = []
for stage in (1, 2, 3):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(4)])
    optimizer = tutti.torch.ZeroOptimizer(model, torch.optim.AdamW, stage=stage, lr=1e-3)
    model(torch.ones(4, 1024)).sum().backward()
    optimizer.finish_gradients()
    held = optimizer.memory()
    optimizer.step()
    held["state"] = optimizer.memory()["state"]
    rows.append((stage, held))
if world.rank == 0:
    print(f"| stage, {world.size} ranks | parameters | gradients | state | together |\n|---|---|---|---|---|")
    for stage, held in rows:
        numbers = [*held.values(), sum(held.values())]
        print(f"| {stage} | " + " | ".join(f"{number / 1e6:.2f} MB" for number in numbers) + " |")
tutti.finalize()
