# torch_reduce_scatter.py: PyTorch's manual, reduce_scatter_tensor
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
print(tutti.rank(), tutti.reduce_scatter(torch.arange(4)))

# prints:
#   0 tensor([0, 2])
#   1 tensor([4, 6])
