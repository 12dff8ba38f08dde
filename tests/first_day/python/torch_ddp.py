# torch_ddp.py: PyTorch's tutorial on DDP: one step of a toy model
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
torch.manual_seed(tutti.rank())
model = tutti.torch.DataParallel(torch.nn.Linear(3, 1, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
before = model.module.weight.detach().clone()
model(torch.full((4, 3), tutti.rank() + 1.0)).mean().backward()
optimizer.step()
print((before - model.module.weight.detach()).round(decimals=4).tolist())

# prints:
#   [[0.15000000596046448, 0.15000000596046448, 0.15000000596046448]]
#   [[0.15000000596046448, 0.15000000596046448, 0.15000000596046448]]
