# horovod_compression.py: Horovod's Compression.fp16
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
model = tutti.torch.DataParallel(torch.nn.Linear(2, 1, bias=False), hook="fp16")
model(torch.full((1, 2), tutti.rank() + 1.0)).sum().backward()
print(model.module.weight.grad)

# prints:
#   tensor([[1.5000, 1.5000]])
#   tensor([[1.5000, 1.5000]])
