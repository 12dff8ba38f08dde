# ddp.py: a DistributedDataParallel of one's own: parameters from rank 0, buckets, and all-reduces that run under backward.
# SPDX-License-Identifier: Apache-2.0
import torch
from torch import nn

import tutti
import tutti.torch

BUCKET_BYTES = 2048                                                     # tutti.torch.DataParallel: 25 MiB


class OwnDataParallel(nn.Module):
    def __init__(self, module, group):
        super().__init__()
        self.module, self.group = module, group
        for parameter in module.parameters():                           # 1. all start alike
            parameter.data = tutti.broadcast(parameter.data, root=0, group=group)
        self.buckets = [[]]
        for parameter in reversed(list(module.parameters())):           # 2. backward reaches the last ones first
            if sum(each.nbytes for each in self.buckets[-1]) + parameter.nbytes > BUCKET_BYTES and self.buckets[-1]:
                self.buckets.append([])
            self.buckets[-1].append(parameter)
            parameter.register_post_accumulate_grad_hook(self.is_ready)
        self.left, self.works = [len(bucket) for bucket in self.buckets], []

    def forward(self, x):
        return self.module(x)

    def is_ready(self, parameter):                                      # 3. autograd calls this during backward
        for number, bucket in enumerate(self.buckets):
            if any(each is parameter for each in bucket):
                self.left[number] -= 1
        while len(self.works) < len(self.buckets) and self.left[len(self.works)] == 0:
            gradients = [each.grad for each in self.buckets[len(self.works)]]
            self.works.append(tutti.all_reduce(gradients, op="mean", group=self.group, async_op=True))

    def finish(self):                                                   # 4. before optimizer.step()
        for bucket, work in zip(self.buckets, self.works):
            for parameter, gradient in zip(bucket, work.wait()):
                parameter.grad = gradient
        self.left, self.works = [len(bucket) for bucket in self.buckets], []


def network():
    torch.manual_seed(world.rank)                                       # the ranks would start differently
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))


world = tutti.init()
own, theirs = OwnDataParallel(network(), world), tutti.torch.DataParallel(network())
steps = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (own, theirs)]
generator = torch.Generator().manual_seed(world.rank)
for _ in range(5):
    x = torch.randn(8, 16, generator=generator)                         # each rank has samples of its own
    for model, step in zip((own, theirs), steps):
        step.zero_grad()
        (model(x) - x.sum(1, keepdim=True)).square().mean().backward()
        if model is own:
            model.finish()
        step.step()

for a, b in zip(own.module.parameters(), theirs.parameters()):
    assert torch.allclose(a, b, atol=1e-6)                              # the same as the library's
    assert torch.equal(a, tutti.broadcast(a.data, root=0))              # and the same on every rank
if world.rank == 0:
    print(len(own.buckets), "buckets of", [sum(each.nbytes for each in bucket) for bucket in own.buckets], "bytes")
