# torch_immediate_p2p.py: PyTorch's tutorial, immediate point to point
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

rank = tutti.init().rank
tensor = torch.zeros(1)
if rank == 0:
    tensor += 1
    req = tutti.isend(tensor, dst=1)
else:
    req = tutti.irecv(out=tensor, src=0)
req.wait()
print("Rank", rank, "has data", tensor[0].item())

# prints:
#   Rank 0 has data 1.0
#   Rank 1 has data 1.0
