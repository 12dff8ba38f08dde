# train_torch.py: digits in PyTorch: tuttirun -n 2 train_torch.py
# SPDX-License-Identifier: Apache-2.0
import digits
import numpy as np
import torch
from torch import nn

import tutti
import tutti.torch

world = tutti.init()
options = digits.options()
(x, y), (test_x, test_y) = (map(torch.from_numpy, part) for part in digits.images())
first = {name: torch.from_numpy(value) for name, value in digits.weights().items()}

network = nn.Sequential(nn.Linear(digits.PIXELS, digits.HIDDEN), nn.Tanh(), nn.Linear(digits.HIDDEN, digits.CLASSES))
network.load_state_dict({"0.weight": first["w1"].T, "0.bias": first["b1"], "2.weight": first["w2"].T, "2.bias": first["b2"]})
model = tutti.torch.DataParallel(network)
optimizer = torch.optim.SGD(model.parameters(), digits.RATE, digits.MOMENTUM)
progress = digits.Progress(world.rank, options)

for epoch in range(options.epochs):
    losses = []
    for batch_x, batch_y in tutti.batches((x, y), digits.BATCH, epoch=epoch, seed=digits.SEED):
        optimizer.zero_grad()
        total = nn.functional.cross_entropy(model(batch_x), batch_y.long(), reduction="sum")
        loss = total / max(len(batch_y), 1)  # a mean over the samples of this rank, which may be none
        model.weigh(len(batch_y))
        loss.backward()
        optimizer.step()
        losses.append((float(loss.detach()), len(batch_y)))
        progress.step()
        progress.waiting += model.timeline.waited  # for the others' gradients: communication goes on under backward
    own, counts = np.array(losses).T
    sums = tutti.all_reduce(np.stack([own * counts, counts]))
    with torch.no_grad():
        progress.epoch(epoch, sums[0] / sums[1], (model(test_x).argmax(-1) == test_y).float().mean())

progress.finish()
tutti.finalize()
