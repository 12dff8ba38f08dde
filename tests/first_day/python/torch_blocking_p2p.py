# torch_blocking_p2p.py: PyTorch's tutorial on distributed applications, blocking point to point
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

rank = tutti.init().rank
tensor = torch.zeros(1)
if rank == 0:
    tensor += 1
    tutti.send(tensor, dst=1)
else:
    tutti.recv(out=tensor, src=0)
print("Rank", rank, "has data", tensor[0].item())

# prints:
#   Rank 0 has data 1.0
#   Rank 1 has data 1.0
