# torch_src_keyword.py: dist.broadcast(tensor, src=0)
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
tutti.broadcast(torch.ones(2), src=0)

# raises on every rank: tutti.InvalidArgument: broadcast: there is no src=; here it is root=
