# messages_jax.py: messages inside jax.jit, and their gradient.
# SPDX-License-Identifier: Apache-2.0
import jax
import jax.numpy as jnp

import tutti

world = tutti.init()
rank, size = world.rank, world.size
left, right = (rank - 1) % size, (rank + 1) % size


@jax.jit
@jax.value_and_grad
def loss(x):
    y = tutti.sendrecv(x, dst=right, src=left)
    return (rank + 1) * jnp.sum(y)


value, gradient = loss(jnp.full(2, float(rank)))
print(f"rank {rank} has the loss {float(value)}, and the gradient {gradient.tolist()} from rank {right}")
