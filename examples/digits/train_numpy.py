# train_numpy.py: digits in NumPy, gradients by hand: tuttirun -n 2 train_numpy.py
# SPDX-License-Identifier: Apache-2.0
import digits
import numpy as np

import tutti

world = tutti.init()
options = digits.options()
(x, y), (test_x, test_y) = digits.images()
weights = digits.weights()
velocity = {name: np.zeros_like(value) for name, value in weights.items()}
progress = digits.Progress(world.rank, options)


def forward(x):
    hidden = np.tanh(x @ weights["w1"] + weights["b1"])
    return hidden, hidden @ weights["w2"] + weights["b2"]


def loss_and_gradients(x, y):
    """Means over the samples of this rank, which may be none."""
    hidden, logits = forward(x)
    shifted = logits - logits.max(-1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(-1))
    count = np.float32(max(len(y), 1))
    loss = (log_sum - shifted[np.arange(len(y)), y]).sum() / count
    slope = np.exp(shifted - log_sum[:, None])
    slope[np.arange(len(y)), y] -= 1
    slope /= count
    back = slope @ weights["w2"].T * (1 - hidden**2)
    return loss, {"w1": x.T @ back, "b1": back.sum(0), "w2": hidden.T @ slope, "b2": slope.sum(0)}


for epoch in range(options.epochs):
    losses = []
    for batch_x, batch_y in tutti.batches((x, y), digits.BATCH, epoch=epoch, seed=digits.SEED):
        found = loss_and_gradients(batch_x, batch_y)
        loss, gradients = progress.timed(tutti.average, found, weight=len(batch_y))
        for name, value in weights.items():
            velocity[name] = digits.MOMENTUM * velocity[name] + gradients[name]
            value -= digits.RATE * velocity[name]
        losses.append(loss)
        progress.step()
    progress.epoch(epoch, losses, (forward(test_x)[1].argmax(-1) == test_y).mean())

progress.finish()
tutti.finalize()
