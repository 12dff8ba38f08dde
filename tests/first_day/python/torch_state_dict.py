# torch_state_dict.py: the root's weights and optimizer to all
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
torch.manual_seed(tutti.rank())
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.Adam(model.parameters())
model.load_state_dict(tutti.broadcast(model.state_dict()))
optimizer.load_state_dict(tutti.broadcast_object(optimizer.state_dict()))
weights = tutti.all_gather(model.weight.detach(), axis=None)
print(bool((weights[0] == weights[1]).all()), optimizer.param_groups[0]["lr"])

# prints:
#   True 0.001
#   True 0.001
