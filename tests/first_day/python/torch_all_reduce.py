# torch_all_reduce.py: PyTorch's manual, all_reduce in place
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
tensor = torch.arange(2, dtype=torch.int64) + 1 + 2 * tutti.rank()
tutti.all_reduce(tensor, op="sum", out=tensor)
print(tensor)

# prints:
#   tensor([4, 6])
#   tensor([4, 6])
