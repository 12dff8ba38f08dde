# test_jax_order.py: the order of calls in and between compiled JAX programs, and what happens when one fails.
# SPDX-License-Identifier: Apache-2.0
import pickle

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import tutti  # noqa: E402

jax.config.update("jax_enable_x64", True)


@pytest.fixture(autouse=True)
def joined(world):
    """Every test here works in the world."""


def test_many_large_independent_calls_neither_swap_nor_deadlock(rank, size):
    """XLA runs what does not depend on each other side by side, and drops what nobody uses."""

    def program(x):
        results = [tutti.all_reduce(x * (number + 1)) for number in range(20)]
        for number in range(10):
            tutti.all_gather(x + number)  # nobody looks at these
        return results[::3]

    x = jnp.full((16 << 10,), rank + 1.0, jnp.float32)
    compiled = jax.jit(program)
    for _ in range(3):
        for number, result in zip(range(0, 20, 3), compiled(x), strict=True):
            assert (np.asarray(result) == (number + 1) * size * (size + 1) / 2).all()


def test_order_holds_in_the_backward_pass_of_many_calls(rank, size):
    def loss(x):
        parts = [tutti.all_reduce(x * (number + 1), op="mean") for number in range(20)]
        return sum(jnp.sum(part) * (number + 1) for number, part in enumerate(parts) if number % 2)

    gradient = jax.jit(jax.grad(loss))(jnp.ones((16 << 10,), jnp.float32))
    expected = sum((number + 1) ** 2 for number in range(20) if number % 2)
    np.testing.assert_allclose(np.asarray(gradient), expected, rtol=1e-6)


def test_a_program_and_the_next_line_of_numpy_keep_their_own_orders(rank, size):
    program = jax.jit(lambda x: tutti.all_reduce(x) + 1)
    x, y = jnp.full((512,), float(rank)), np.full(3, rank)
    total = size * (size - 1) // 2
    pending = []
    for _ in range(1000):
        pending.append(program(x))
        assert (tutti.all_reduce(y) == total).all()
    assert all((np.asarray(result) == total + 1).all() for result in pending)


def test_programs_that_follow_each_other_keep_their_order(rank, size):
    """A small program is ready to run before a large one that was started earlier."""
    large = jax.jit(lambda x: tutti.all_reduce(jnp.sin(x) @ jnp.cos(x)).sum())
    small = jax.jit(lambda y: tutti.all_gather(y))
    x, y = jnp.ones((200, 200)), jnp.asarray([rank])
    for _ in range(20):
        one, other = large(x), small(y)
        np.testing.assert_array_equal(np.asarray(other), np.arange(size))
        assert np.isfinite(one)


@pytest.mark.ranks(2)
def test_a_program_that_fails_takes_no_other_group_with_it(world, rank, size):
    """Not even one that was started before anybody knew."""
    group = world.split(0)
    fails = jax.jit(lambda x, y: tutti.all_reduce(jnp.tanh(x @ x @ x).sum() + y, group=group))
    works = jax.jit(tutti.all_reduce)
    x, y = jnp.ones((300, 300)), jnp.ones(2)
    works(y), fails(x, y)
    failed = fails(x, jnp.ones(3 if rank else 4))
    assert (np.asarray(works(y)) == size).all()
    with pytest.raises(tutti.Mismatch), tutti.jax.translated():
        failed.block_until_ready()
    assert (np.asarray(works(y)) == size).all()
    jax.effects_barrier()


def test_groups_in_one_program(world, rank, size):
    """Large and independent of each other, with memory to use again; all ranks agree on the order only."""
    halves = world.split(rank % 2)
    groups = [world, halves, world.split(0), halves.split(0)]

    def program(x):
        results = [tutti.all_reduce(x + number, group=groups[number % 4]) for number in range(16)]
        return jnp.stack([result.sum() for result in (results if rank % 2 else results[::-1])])

    sums = np.asarray(jax.jit(program)(jnp.zeros((16 << 10,))))
    expected = [(16 << 10) * number * groups[number % 4].size for number in range(16)]
    assert sums.tolist() == (expected if rank % 2 else expected[::-1])


def test_a_closed_group_raises(world):
    group = world.split(0)
    program = jax.jit(lambda x: tutti.all_reduce(x, group=group))
    lowered = program.lower(jnp.ones(2)).compile()
    lowered(jnp.ones(2)).block_until_ready()
    del group, program
    import gc

    gc.collect()
    jax.clear_caches()
    with pytest.raises(tutti.InvalidArgument, match="closed"), tutti.jax.translated():
        lowered(jnp.ones(2)).block_until_ready()


@pytest.mark.ranks(2)
def test_errors_inside_programs_are_tuttis_and_jaxs(world, rank):
    group = world.split(0)
    program = jax.jit(lambda x: tutti.all_reduce(x, group=group))
    x = jnp.ones(2 if rank else 3)
    for look in (jax.block_until_ready, np.asarray, lambda y: float(y[0])):
        with pytest.raises(tutti.Mismatch, match="all_reduce") as caught:
            look(program(x))
        assert isinstance(caught.value, jax.errors.JaxRuntimeError)
    with pytest.raises(tutti.Mismatch), tutti.jax.translated():
        program(x).block_until_ready()
    assert type(pickle.loads(pickle.dumps(caught.value))) is tutti.Mismatch


def test_other_errors_of_programs_stay_jaxs():
    error = jax.errors.JaxRuntimeError("INTERNAL: something else")
    assert type(error) is jax.errors.JaxRuntimeError and str(error) == "INTERNAL: something else"


@pytest.mark.ranks(2)
def test_a_timeout_inside_a_program(world, rank):
    group = world.split(0)
    program = jax.jit(lambda x: tutti.all_reduce(x, group=group, timeout=0.3))
    program(jnp.ones(2)).block_until_ready()
    if rank:
        with pytest.raises(tutti.Timeout), tutti.jax.translated():
            program(jnp.ones(2)).block_until_ready()
