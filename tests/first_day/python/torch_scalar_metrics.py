# torch_scalar_metrics.py: losses of all ranks as one tensor
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
loss = torch.tensor(0.5 * (tutti.rank() + 1), requires_grad=True)
losses = tutti.all_gather(loss)
losses.sum().backward()
print(losses.tolist(), loss.grad.item())

# prints:
#   [0.5, 1.0] 2.0
#   [0.5, 1.0] 2.0
