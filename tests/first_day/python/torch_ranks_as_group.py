# torch_ranks_as_group.py: a list of ranks where a group belongs
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
tutti.all_reduce(torch.ones(1), group=[0, 1])

# raises on every rank: tutti.InvalidArgument: group=[0, 1] is no group; make one once, group = tutti.Group([0, 1]), and pass that in every call
