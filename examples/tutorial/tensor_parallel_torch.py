# tensor_parallel_torch.py: a model that exists is split over the ranks, and gives the same results and gradients.
# SPDX-License-Identifier: Apache-2.0
import torch
from torch import nn

import tutti
import tutti.torch

world = tutti.init()
tutti.model_parallel.init()
ids, targets = torch.tensor([[1, 5, 2], [9, 0, 3]]), torch.tensor([0, 7])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.up, self.down, self.head = nn.Embedding(10, 4), nn.Linear(4, 8), nn.Linear(8, 4), nn.Linear(4, 12)

    def forward(self, ids):
        x = self.embed(ids).mean(1)
        return self.head(x + self.down(torch.relu(self.up(x))))


torch.manual_seed(3)
model = Model()
loss = nn.functional.cross_entropy(model(ids), targets)         # one process, the whole model
loss.backward()
gradient = model.embed.weight.grad.clone()
model.zero_grad()

tutti.torch.parallelize(model, {"embed": "rows", "up": "columns, split", "down": "rows, split", "head": "columns, split"})
split = tutti.torch.parallel_cross_entropy(model(ids), targets) # classes stay where they are: no rank has all logits
split.mean().backward()

assert torch.allclose(split.mean(), loss)
rows = tutti.all_gather(model.embed.weight.grad, uneven=True)   # the gradient of the embedding, put together
assert torch.allclose(rows, gradient, atol=1e-6)
if world.rank == 0:
    print("rank 0 holds", [tuple(p.shape) for p in model.parameters()])
tutti.model_parallel.destroy()
