# ring_all_reduce_jax.py: the ring in JAX, compiled, with its gradient.
# SPDX-License-Identifier: Apache-2.0
import jax
import jax.numpy as jnp

import tutti

world = tutti.init()
rank, size = world.rank, world.size
left, right = (rank - 1) % size, (rank + 1) % size


@jax.jit
def ring_all_reduce(x):
    blocks = jnp.split(x, size)
    for step in range(size - 1):                                    # which block it is, is known when the program is made
        give, take = (rank - step) % size, (rank - step - 1) % size
        blocks[take] += tutti.sendrecv(blocks[give], dst=right, src=left)
    for step in range(size - 1):
        give, take = (rank - step + 1) % size, (rank - step) % size
        blocks[take] = tutti.sendrecv(blocks[give], dst=right, src=left)
    return jnp.concatenate(blocks)


x = jnp.arange(4.0 * size) + rank
gradient = jax.grad(lambda x: jnp.sum(ring_all_reduce(x)) * (rank + 1))(x)
assert jnp.allclose(ring_all_reduce(x), tutti.all_reduce(x))
assert jnp.allclose(gradient, size * (size + 1) / 2)
if rank == 0:
    print("gradient:", float(gradient[0]))
