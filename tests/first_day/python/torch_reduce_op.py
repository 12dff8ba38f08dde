# torch_reduce_op.py: PyTorch's ReduceOp
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch
import torch.distributed as dist

import tutti

tutti.init()
tutti.all_reduce(torch.ones(1), op=dist.ReduceOp.SUM)

# raises on every rank: tutti.InvalidArgument: op=<RedOpType.SUM: 0> is not a reduction here; write op="sum"…
