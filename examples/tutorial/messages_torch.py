# messages_torch.py: what sendrecv brings is part of autograd's graph: its gradient goes back to the rank it came from.
# SPDX-License-Identifier: Apache-2.0
import torch

import tutti

world = tutti.init()
rank, size = world.rank, world.size
left, right = (rank - 1) % size, (rank + 1) % size

x = torch.full((2,), float(rank), requires_grad=True)
y = tutti.sendrecv(x, dst=right, src=left)
((rank + 1) * y).sum().backward()                     # this rank's loss weighs y with rank + 1
print(f"rank {rank} got {y.tolist()}, and the gradient {x.grad.tolist()} from rank {right}")
