# zero_jax.py: ZeRO's first two stages in JAX, with an optimiser of optax, inside a compiled step.
# SPDX-License-Identifier: Apache-2.0
import jax
import jax.numpy as jnp
import optax

import tutti
import tutti.jax

world = tutti.init()
data = jax.random.normal(jax.random.key(1), (48, 64))            # the same on every rank, which takes its part
params = {"w": jax.random.normal(jax.random.key(0), (64, 64)), "b": jnp.zeros(64)}


def loss_of(params, x):
    return jnp.mean((jnp.tanh(x @ params["w"] + params["b"]) - x) ** 2)


def train(optimizer, x, params):
    @jax.jit
    def step(params, state):
        updates, state = optimizer.update(jax.grad(loss_of)(params, x), state, params)
        return optax.apply_updates(params, updates), state

    state = optimizer.init(params)
    for _ in range(3):
        params, state = step(params, state)
    return params, sum(leaf.nbytes for leaf in jax.tree.leaves(state))


mine = jnp.split(data, world.size)[world.rank]
shared, part = train(tutti.jax.training.zero(optax.adamw(1e-2)), mine, params)
plain, whole = train(optax.adamw(1e-2), data, params)            # one process, the whole batch
assert jnp.allclose(shared["w"], plain["w"], atol=1e-4)
if world.rank == 0:
    print("state on rank 0:", round(100 * part / whole), "% of that of one process")
