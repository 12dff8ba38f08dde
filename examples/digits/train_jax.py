# train_jax.py: digits in JAX, each step one compiled program: tuttirun -n 2 train_jax.py
# SPDX-License-Identifier: Apache-2.0
import digits
import jax
import jax.numpy as jnp
import numpy as np
import optax

import tutti
import tutti.jax.training

world = tutti.init()
options = digits.options()
(x, y), (test_x, test_y) = digits.images()
weights = {name: jnp.asarray(value) for name, value in digits.weights().items()}
optimizer = optax.sgd(digits.RATE, digits.MOMENTUM)
state = optimizer.init(weights)
progress = digits.Progress(world.rank, options.epochs, options.curve)


def logits_of(weights, x):
    return jnp.tanh(x @ weights["w1"] + weights["b1"]) @ weights["w2"] + weights["b2"]


def loss_of(weights, x, y, counts):
    """The mean over this rank's samples. Batches are padded to one length, so that one program serves all."""
    losses = optax.softmax_cross_entropy_with_integer_labels(logits_of(weights, x), y)
    return jnp.sum(losses * counts) / jnp.maximum(jnp.sum(counts), 1)


@jax.jit
def train(weights, state, x, y, counts):
    loss, gradients = tutti.jax.training.value_and_grad(loss_of)(weights, x, y, counts, weight=jnp.sum(counts))
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(weights, updates), state, loss


length = -(-digits.BATCH // world.size)
for epoch in range(options.epochs):
    losses = []
    for batch_x, batch_y in tutti.batches((x, y), digits.BATCH, epoch=epoch, seed=digits.SEED):
        missing = length - len(batch_y)
        counts = np.pad(np.ones(len(batch_y), np.float32), (0, missing))
        padded = np.pad(batch_x, ((0, missing), (0, 0))), np.pad(batch_y, (0, missing)), counts
        weights, state, loss = train(weights, state, *padded)
        losses.append(loss)
    accuracy = (logits_of(weights, test_x).argmax(-1) == test_y).mean()
    progress.epoch(epoch, [float(loss) for loss in losses], accuracy)

progress.finish()
tutti.finalize()
