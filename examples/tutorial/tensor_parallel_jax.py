# tensor_parallel_jax.py: the two split layers in JAX, with gradients, compiled.
# SPDX-License-Identifier: Apache-2.0
import jax
import jax.numpy as jnp

import tutti

world = tutti.init()
mp = tutti.model_parallel
mp.init()
keys = jax.random.split(jax.random.key(0), 3)                   # the same on every rank
x, up, down = (jax.random.normal(key, shape) for key, shape in zip(keys, ((5, 6), (6, 8), (8, 6))))


def loss_of(weights):
    up, down = weights
    return jnp.sum(mp.reduce(jnp.tanh(mp.copy(x) @ up) @ down) ** 2)


def dense(weights):
    up, down = weights
    return jnp.sum((jnp.tanh(x @ up) @ down) ** 2)


mine = tuple(jnp.array_split(w, world.size, axis=axis)[world.rank] for w, axis in ((up, 1), (down, 0)))
loss, (d_up, d_down) = jax.jit(jax.value_and_grad(loss_of))(mine)
whole, (whole_up, whole_down) = jax.value_and_grad(dense)((up, down))
assert jnp.allclose(loss, whole, rtol=1e-4)
assert jnp.allclose(d_up, jnp.array_split(whole_up, world.size, axis=1)[world.rank], rtol=1e-3, atol=1e-3)
assert jnp.allclose(d_down, jnp.array_split(whole_down, world.size, axis=0)[world.rank], rtol=1e-3, atol=1e-3)
mp.destroy()
