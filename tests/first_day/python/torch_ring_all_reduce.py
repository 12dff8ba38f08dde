# torch_ring_all_reduce.py: PyTorch's tutorial, a ring all_reduce of one's own
# SPDX-License-Identifier: Apache-2.0
# ranks: 3
import torch

import tutti


def allreduce(send):
    rank, size = tutti.rank(), tutti.size()
    accum, buffer = send.clone(), send.clone()
    for _ in range(size - 1):
        buffer = tutti.sendrecv(buffer, dst=(rank + 1) % size, src=(rank - 1) % size)
        accum += buffer
    return accum


tutti.init()
print(allreduce(torch.full((2,), tutti.rank() + 1.0)))

# prints:
#   tensor([6., 6.])
#   tensor([6., 6.])
#   tensor([6., 6.])
