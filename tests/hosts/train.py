# train.py: data-parallel training in torch, the same on any number of hosts: prints the losses of every step.
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.distributed as dist

import tutti.torch  # the backend

dist.init_process_group("tutti")
torch.manual_seed(3)
torch.set_num_threads(1)
data = torch.randn(512, 32, dtype=torch.float64)
target = torch.sin(data.sum(1, keepdim=True))
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).double()
net = torch.nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
mine = slice(dist.get_rank(), None, dist.get_world_size())
for step in range(20):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(data[mine]), target[mine])
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss.data)
    if dist.get_rank() == 0:
        print(f"step {step} loss {loss.item() / dist.get_world_size():.9f}", flush=True)
dist.destroy_process_group()
