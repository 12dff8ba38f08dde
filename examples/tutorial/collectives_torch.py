# collectives_torch.py: a nest of tensors in one call, which goes on while the program does something else.
# SPDX-License-Identifier: Apache-2.0
import torch

import tutti

world = tutti.init()
state = {"weights": torch.ones(2, 2), "biases": [torch.zeros(2), torch.tensor(float(world.rank))]}
work = tutti.all_reduce(state, op="mean", async_op=True)            # few messages for all of it
other = torch.ones(100, 100) @ torch.ones(100, 100)                 # meanwhile
mean = work.wait(timeout=30)                                        # a nest of the same structure
if world.rank == 0:
    print(mean["weights"].tolist(), mean["biases"][1].item(), other[0, 0].item())
