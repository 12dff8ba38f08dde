# horovod_broadcast_parameters.py: Horovod's broadcast_parameters of a state_dict
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import collections

import torch

import tutti

tutti.init()
torch.manual_seed(tutti.rank())
model = torch.nn.Linear(2, 2)
state = tutti.broadcast(model.state_dict(), root=0)
model.load_state_dict(state)
print(type(state) is collections.OrderedDict, list(state), tutti.all_reduce(model.bias.detach(), op="min").equal(model.bias))

# prints:
#   True ['weight', 'bias'] True
#   True ['weight', 'bias'] True
