# ring_all_reduce_torch.py: the ring in PyTorch, with the gradient that comes of sendrecv's.
# SPDX-License-Identifier: Apache-2.0
import torch

import tutti

world = tutti.init()
rank, size = world.rank, world.size
left, right = (rank - 1) % size, (rank + 1) % size


def ring_all_reduce(x):
    blocks = list(x.tensor_split(size))
    for step in range(size - 1):
        give, take = (rank - step) % size, (rank - step - 1) % size
        blocks[take] = blocks[take] + tutti.sendrecv(blocks[give], dst=right, src=left)
    for step in range(size - 1):
        give, take = (rank - step + 1) % size, (rank - step) % size
        blocks[take] = tutti.sendrecv(blocks[give], dst=right, src=left)
    return torch.cat(blocks)


x = (torch.arange(4.0 * size) + rank).requires_grad_()
y = ring_all_reduce(x)
(y * (rank + 1)).sum().backward()                                   # the gradient of an all-reduce is one, too
assert torch.equal(y.detach(), tutti.all_reduce(x.detach()))
assert torch.equal(x.grad, torch.full_like(x, size * (size + 1) / 2))
if rank == 0:
    print("gradient:", x.grad[0].item())
