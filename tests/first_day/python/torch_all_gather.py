# torch_all_gather.py: PyTorch's manual, all_gather_into_tensor joined and stacked
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
tensor = torch.arange(2) + 1 + 2 * tutti.rank()
print(tutti.all_gather(tensor), tutti.all_gather(tensor, axis=None).shape)

# prints:
#   tensor([1, 2, 3, 4]) torch.Size([2, 2])
#   tensor([1, 2, 3, 4]) torch.Size([2, 2])
