# torch_tensor_list.py: dist.all_gather(list, tensor)
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
tensor = torch.ones(2)
tutti.all_gather([torch.zeros(2), torch.zeros(2)], tensor)

# raises on every rank: tutti.InvalidArgument: all_gather: axis= is an array; results come back, y = tutti.all_gather(x), or go into an array given as out=
