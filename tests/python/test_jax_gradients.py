# test_jax_gradients.py: derivatives of the verbs in JAX, against finite differences of the sum of all ranks' losses.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import jax_cases  # noqa: E402
import tutti  # noqa: E402

jax.config.update("jax_enable_x64", True)

STEP = 1e-5


@pytest.fixture(autouse=True)
def joined(world):
    """Every test here works in the world."""


def total(value):
    """The sum over all ranks of a number."""
    return float(tutti.all_reduce(np.asarray(float(value))))


def numeric_slope(loss, x, direction):
    """Of the sum of all ranks' losses."""
    return (total(loss(x + STEP * direction)) - total(loss(x - STEP * direction))) / (2 * STEP)


def loss_of(verb, rank):
    """A loss that weighs every element of the result differently, and differently on each rank."""

    def loss(x):
        y = verb(jnp.sin(x))
        weights = jax_cases.make(rank, y.shape, salt=7)
        return jnp.sum(y * weights) + 0.5 * jnp.sum(y * y)

    return loss


def check_gradient(loss, x, rank, size):
    gradient = jax.jit(jax.grad(loss))(x)
    loss = jax.jit(loss)
    for mover in range(size):  # one rank's input moves at a time, then all of them
        direction = jax_cases.make(rank, x.shape, salt=3) * (rank == mover)
        assert total(jnp.vdot(gradient, direction)) == pytest.approx(numeric_slope(loss, x, direction), rel=1e-5, abs=1e-7)
    return gradient


@pytest.mark.parametrize("name", jax_cases.NAMES)
def test_gradient(name, rank, size):
    verb, shape = jax_cases.cases(rank, size)[name]
    loss, x = loss_of(verb, rank), jnp.asarray(jax_cases.make(rank, shape))
    gradient = check_gradient(loss, x, rank, size)
    np.testing.assert_allclose(np.asarray(jax.grad(loss)(x)), np.asarray(gradient), rtol=1e-12)  # without jit


@pytest.mark.parametrize("name", jax_cases.NAMES)
def test_forward_mode(name, rank, size):
    verb, shape = jax_cases.cases(rank, size)[name]
    x, direction = (jnp.asarray(jax_cases.make(rank, shape, salt)) for salt in (0, 3))
    value, tangent = jax.jit(lambda x, t: jax.jvp(verb, (x,), (t,)))(x, direction)
    numeric = (verb(x + STEP * direction) - verb(x - STEP * direction)) / (2 * STEP)
    np.testing.assert_allclose(np.asarray(tangent), np.asarray(numeric), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(np.asarray(value), np.asarray(verb(x)))


@pytest.mark.parametrize("name", ["all_reduce", "reduce", "gather", "scatter", "all_gather", "reduce_scatter_max", "sendrecv_edge"])
def test_second_derivatives(name, rank, size):
    """The slope along one direction is a loss like any other."""
    verb, shape = jax_cases.cases(rank, size)[name]
    loss, x = loss_of(verb, rank), jnp.asarray(jax_cases.make(rank, shape))
    direction = jnp.asarray(jax_cases.make(rank, shape, salt=5))
    check_gradient(lambda x: jnp.vdot(jax.grad(loss)(x), direction), x, rank, size)


def test_equal_values_share_the_gradient_of_max(size):
    gradient = jax.jit(jax.grad(lambda x: tutti.all_reduce(x, op="max").sum()))(jnp.ones(3))
    np.testing.assert_allclose(np.asarray(gradient), 1.0)  # the sum of size losses, shared by size ranks


def test_gradients_through_scan_cond_checkpoint_and_vmap(rank, size):
    def layer(carry, weight):
        carry = jax.lax.cond(weight.sum() > 1e9, lambda c: c, lambda c: tutti.all_reduce(c, op="mean"), carry * weight)
        return jnp.tanh(carry), tutti.all_gather(carry[:1]).sum()

    def loss(x):
        y, seen = jax.lax.scan(jax.checkpoint(layer), x[0], x[1:])
        batched = jax.vmap(lambda row: tutti.reduce_scatter(jnp.tile(row, size), axis=0).sum())(x)
        return y.sum() + (seen**2).sum() + (batched * jnp.arange(len(x))).sum() * 0.1

    check_gradient(loss, jnp.asarray(jax_cases.make(rank, (4, 3))), rank, size)


def test_gradients_of_nests(rank, size):
    def loss(nest):
        nest = tutti.all_reduce(jax.tree.map(jnp.sin, nest), op="mean")
        return (nest["w"] ** 2).sum() + nest["b"][0].sum()

    nest = {"w": jnp.full((2, 2), rank + 1.0), "b": (jnp.ones(3),)}
    gradient = jax.jit(jax.grad(loss))(nest)
    mean = np.mean([np.sin(other + 1.0) for other in range(size)])
    np.testing.assert_allclose(np.asarray(gradient["w"]), 2 * mean * np.cos(rank + 1.0), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(gradient["b"][0]), np.cos(1.0), rtol=1e-12)


def test_a_rank_that_does_not_use_a_result_takes_part_in_backward(rank, size):
    def loss(x):
        y = tutti.all_reduce(x)
        return jnp.sum(x) if rank else jnp.sum(y * y)  # only rank 0 looks at it

    for gradient in (jax.grad(loss), jax.jit(jax.grad(loss)), jax.grad(jax.jit(loss))):
        result = gradient(jnp.full((2,), 3.0))
        np.testing.assert_allclose(np.asarray(result), 6.0 * size + (rank > 0))


def test_tie_changes_nothing_but_is_taken(rank, size):
    def loss(x):
        y = tutti.all_reduce(x)
        return tutti.tie(jnp.sum(x), y) if rank else jnp.sum(y)

    result = jax.jit(jax.grad(loss))(jnp.ones(2))
    np.testing.assert_allclose(np.asarray(result), 1.0 + (rank > 0))


@pytest.mark.ranks(2)
def test_disagreement_about_differentiation_is_a_mismatch_in_forward(world, rank):
    group = world.split(0)

    def loss(x):
        return tutti.all_reduce(x, group=group).sum()

    with pytest.raises(tutti.Mismatch), tutti.jax.translated():
        jax.block_until_ready(jax.jit(jax.grad(loss) if rank else loss)(jnp.ones(3)))


@pytest.mark.parametrize("op", ["product", "band"])
def test_what_has_no_gradient_refuses_in_forward(op):
    with pytest.raises(tutti.Unsupported, match=op):
        jax.grad(lambda x: tutti.all_reduce(x, op=op).sum())(jnp.ones(2))
    with pytest.raises(tutti.Unsupported, match="max"):
        jax.grad(lambda x: tutti.scan(x, op="max").sum())(jnp.ones(2))


def test_integers_and_stopped_gradients_need_none(rank, size):
    def loss(x):
        count = tutti.all_reduce(jnp.asarray(rank + 1), op="product")
        return jnp.sum(x * jax.lax.stop_gradient(tutti.all_reduce(x, op="product"))) * count

    gradient = jax.jit(jax.grad(loss))(jnp.full((2,), 2.0))
    np.testing.assert_allclose(np.asarray(gradient), 2.0**size * np.prod(np.arange(1, size + 1)))
