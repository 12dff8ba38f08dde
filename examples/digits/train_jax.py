# train_jax.py: digits in JAX: tuttirun -n 2 train_jax.py
# SPDX-License-Identifier: Apache-2.0
import digits
import jax
import jax.numpy as jnp
import numpy as np
import optax

import tutti

world = tutti.init()
options = digits.options()
(x, y), (test_x, test_y) = digits.images()
weights = {name: jnp.asarray(value) for name, value in digits.weights().items()}
optimizer = optax.sgd(digits.RATE, digits.MOMENTUM)
state = optimizer.init(weights)
progress = digits.Progress(world.rank, options)


def logits_of(weights, x):
    return jnp.tanh(x @ weights["w1"] + weights["b1"]) @ weights["w2"] + weights["b2"]


def loss_of(weights, x, y, counts):
    """The mean over this rank's samples. Batches are padded to one length, so that one program serves all."""
    losses = optax.softmax_cross_entropy_with_integer_labels(logits_of(weights, x), y)
    return jnp.sum(losses * counts) / jnp.maximum(jnp.sum(counts), 1)


# One compiled step would do (examples/data_parallel); as programs of their own, the time of the average can be told.
loss_and_gradients = jax.jit(jax.value_and_grad(loss_of))
average = jax.jit(lambda found, samples: tutti.average(found, weight=samples))


@jax.jit
def apply(weights, state, gradients):
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(weights, updates), state


length = -(-digits.BATCH // world.size)
for epoch in range(options.epochs):
    losses = []
    for batch_x, batch_y in tutti.batches((x, y), digits.BATCH, epoch=epoch, seed=digits.SEED):
        missing = length - len(batch_y)
        counts = np.pad(np.ones(len(batch_y), np.float32), (0, missing))
        padded = np.pad(batch_x, ((0, missing), (0, 0))), np.pad(batch_y, (0, missing)), counts
        found = jax.block_until_ready(loss_and_gradients(weights, *padded))
        samples = np.float32(len(batch_y))
        loss, gradients = progress.timed(lambda: jax.block_until_ready(average(found, samples)))
        weights, state = apply(weights, state, gradients)
        losses.append(loss)
        progress.step()
    accuracy = (logits_of(weights, test_x).argmax(-1) == test_y).mean()
    progress.epoch(epoch, [float(loss) for loss in losses], accuracy)

progress.finish()
tutti.finalize()
