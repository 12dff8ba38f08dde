# test_jax_gradients.py: derivatives of the verbs in JAX, against finite differences of the sum of all ranks' losses.
# SPDX-License-Identifier: Apache-2.0
import functools

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


def totals(values):
    """Numbers by name, summed over all ranks."""
    return dict(zip(values, tutti.all_reduce(np.asarray([float(value) for value in values.values()])), strict=True))


def loss_of(verb, rank, x):
    """Weighs every element of the result differently, and differently on each rank."""
    y = verb(jnp.sin(x))
    weights = jax_cases.make(rank, y.shape, salt=7)
    return jnp.sum(y * weights) + 0.5 * jnp.sum(y * y)


def losses_of(verbs, rank):
    return lambda inputs: {name: loss_of(verb, rank, inputs[name]) for name, verb in verbs.items()}


def inputs_of(shapes, rank, salt=0):
    return {name: jax_cases.make(rank, shape, salt) for name, shape in shapes.items()}


def check_gradients(losses, inputs, rank, size):
    """Losses by name, each of one input, against finite differences of their sums over all ranks."""

    def both(inputs):
        values, pull_back = jax.vjp(losses, inputs)
        return values, pull_back({name: jnp.ones(()) for name in values})[0]

    program = jax.jit(both)
    gradients = program(inputs)[1]
    shapes = {name: x.shape for name, x in inputs.items()}
    for mover in range(size):  # one rank's input moves at a time
        directions = {name: x * (rank == mover) for name, x in inputs_of(shapes, rank, salt=3).items()}
        ahead, behind = (
            totals(program({name: x + step * directions[name] for name, x in inputs.items()})[0])
            for step in (STEP, -STEP)
        )
        exact = totals({name: np.vdot(gradients[name], direction) for name, direction in directions.items()})
        numeric = {name: (ahead[name] - behind[name]) / (2 * STEP) for name in ahead}
        assert exact == pytest.approx(numeric, rel=1e-5, abs=1e-7), f"where rank {mover} moves"
    return gradients


def split_cases(rank, size, names=jax_cases.NAMES):
    chosen = {name: case for name, case in jax_cases.cases(rank, size).items() if name in names}
    return {name: verb for name, (verb, _) in chosen.items()}, {name: shape for name, (_, shape) in chosen.items()}


@pytest.mark.parametrize("part", range(4))
def test_gradients_of_every_verb(part, rank, size):
    verbs, shapes = split_cases(rank, size, jax_cases.NAMES[part::4])
    check_gradients(losses_of(verbs, rank), inputs_of(shapes, rank), rank, size)


@pytest.mark.parametrize("name", ["reduce", "scatter"])
def test_gradients_without_jit_are_the_same(name, rank, size):
    verb, shape = jax_cases.cases(rank, size)[name]
    gradient = jax.grad(functools.partial(loss_of, verb, rank))
    x = jnp.asarray(jax_cases.make(rank, shape))
    np.testing.assert_allclose(np.asarray(gradient(x)), np.asarray(jax.jit(gradient)(x)), rtol=1e-12)


def test_forward_mode_of_every_verb(rank, size):
    verbs, shapes = split_cases(rank, size)
    inputs, directions = (inputs_of(shapes, rank, salt) for salt in (0, 3))

    def program(inputs, directions):
        return {name: jax.jvp(verb, (inputs[name],), (directions[name],)) for name, verb in verbs.items()}

    for name, (value, tangent) in jax.jit(program)(inputs, directions).items():
        verb, x, step = verbs[name], inputs[name], STEP * directions[name]
        numeric = (verb(x + step) - verb(x - step)) / (2 * STEP)
        np.testing.assert_allclose(np.asarray(tangent), numeric, rtol=1e-5, atol=1e-7, err_msg=name)
        np.testing.assert_array_equal(np.asarray(value), verb(x), err_msg=name)


def test_second_derivatives(rank, size):
    """The slope along one direction is a loss like any other."""
    names = ("all_reduce", "reduce", "gather", "scatter_uneven", "all_gather", "reduce_scatter_max", "sendrecv_edge")
    verbs, shapes = split_cases(rank, size, names)
    directions = inputs_of(shapes, rank, salt=5)

    def slopes(inputs):
        slope = jax.grad(lambda inputs: sum(losses_of(verbs, rank)(inputs).values()))(inputs)
        return {name: jnp.vdot(slope[name], directions[name]) for name in verbs}

    check_gradients(slopes, inputs_of(shapes, rank), rank, size)


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

    x = jax_cases.make(rank, (4, 3))
    check_gradients(lambda inputs: {"x": loss(inputs["x"])}, {"x": x}, rank, size)


def test_gradients_of_trees(rank, size):
    def loss(tree):
        tree = tutti.all_reduce(jax.tree.map(jnp.sin, tree), op="mean")
        return (tree["w"] ** 2).sum() + tree["b"][0].sum()

    tree = {"w": jnp.full((2, 2), rank + 1.0), "b": (jnp.ones(3),)}
    gradient = jax.jit(jax.grad(loss))(tree)
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
@pytest.mark.parametrize("verb", ["all_reduce", "sendrecv"])
def test_disagreement_about_differentiation_is_a_mismatch_in_forward(world, rank, size, verb):
    group = world.split(0)

    def loss(x):
        if verb == "sendrecv":
            x = tutti.sendrecv(x, dst=(rank + 1) % size, src=(rank - 1) % size, group=group)
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
        return jnp.sum(x * tutti.all_reduce(jax.lax.stop_gradient(x), op="product")) * count

    gradient = jax.jit(jax.grad(loss))(jnp.full((2,), 2.0))
    np.testing.assert_allclose(np.asarray(gradient), 2.0**size * np.prod(np.arange(1, size + 1)))
