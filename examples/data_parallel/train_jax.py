# train_jax.py: data-parallel training with JAX, the whole step compiled: tuttirun -n 2 train_jax.py
# SPDX-License-Identifier: Apache-2.0
import jax
import jax.numpy as jnp

import problem
import tutti

world = tutti.init()
x, y = map(jnp.asarray, problem.samples(world.rank, world.size))
parameters = tuple(map(jnp.asarray, problem.weights()))


def loss_of(parameters):
    first, second = parameters
    return jnp.mean((jnp.tanh(x @ first) @ second - y) ** 2)


@jax.jit
def train(parameters):
    found = jax.value_and_grad(loss_of)(parameters)
    loss, gradients = tutti.average(found, weight=len(y))  # of all samples of all ranks
    return loss, jax.tree.map(lambda array, slope: array - problem.RATE * slope, parameters, gradients)


for step in range(problem.STEPS):
    loss, parameters = train(parameters)
    if world.rank == 0:
        print(f"step {step:2} loss {loss:.6f}")

tutti.finalize()
