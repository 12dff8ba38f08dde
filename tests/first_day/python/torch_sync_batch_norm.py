# torch_sync_batch_norm.py: PyTorch's manual, SyncBatchNorm in a data parallel model
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import torch

import tutti

tutti.init()
net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.BatchNorm1d(1, momentum=None))
net = torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)
with torch.no_grad():
    net[0].weight.fill_(1.0), net[0].bias.fill_(0.0)
model = tutti.torch.DataParallel(net)
model(torch.tensor([[0.0], [2.0]]) + 10 * tutti.rank())
print(net[1].running_mean.item(), round(net[1].running_var.item(), 3))

# prints:
#   6.0 34.667
#   6.0 34.667
