# torch_async.py: PyTorch's manual, async_op and its work
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
output = torch.ones(3) * tutti.rank()
handle = tutti.all_reduce(output, async_op=True)
print(handle.wait())

# prints:
#   tensor([1., 1., 1.])
#   tensor([1., 1., 1.])
