# horovod_join.py: Horovod's join: ranks with different numbers of batches
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
model = tutti.torch.DataParallel(torch.nn.Linear(1, 1))
steps = 0
with model.join():
    for _ in range(1 + tutti.rank()):
        model.zero_grad()
        model(torch.ones(1, 1)).sum().backward()
        steps += 1
print(tutti.rank(), steps, model.module.weight.grad is not None)

# prints:
#   0 1 True
#   1 2 True
