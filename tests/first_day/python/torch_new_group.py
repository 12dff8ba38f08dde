# torch_new_group.py: PyTorch's manual, collectives in a group
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import torch

import tutti

tutti.init()
group = tutti.Group([0, 2])
if group.rank >= 0:
    print(tutti.rank(), tutti.all_reduce(torch.ones(1), group=group))

# prints:
#   0 tensor([2.])
#   2 tensor([2.])
