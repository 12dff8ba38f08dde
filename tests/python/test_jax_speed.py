# test_jax_speed.py: programs with calls are started as those without are, and waited for all the same.
# SPDX-License-Identifier: Apache-2.0
import pytest

import tutti

jax = pytest.importorskip("jax")
jnp = jax.numpy
np = pytest.importorskip("numpy")


def programs():
    yield "one call", lambda x: tutti.all_reduce(x)
    yield "calls in a loop", lambda x: jax.lax.fori_loop(0, 3, lambda _, y: tutti.all_reduce(y), x)
    yield "a call in an inner function", lambda x: jax.jit(tutti.all_reduce)(x) + 1
    yield "a result that is not used", lambda x: (tutti.all_reduce(x), x + 1)[1]
    yield "a branch", lambda x: jax.lax.cond(x.sum() > 0, tutti.all_reduce, lambda y: y, x)


@pytest.mark.parametrize("name", [name for name, _ in programs()])
def test_jax_starts_a_program_with_calls_without_python(world, name):
    """JAX's C++ starts programs that have no effects; the others go through Python, which takes ten times as long."""
    program = jax.jit(dict(programs())[name])
    compiled = program.lower(jnp.ones(2)).compile()
    assert not compiled._executable.unsafe_call.ordered_effects
    program(jnp.ones(2)).block_until_ready()
    assert program._cache_size() == 1  # kept by the C++ side


def test_calls_of_a_loop_stay_in_order(rank, size):
    """Each depends on the token of the one before, not on its result."""

    @jax.jit
    def program(x):
        first = tutti.all_gather(x)
        inside = jax.lax.fori_loop(0, 3, lambda i, s: s + tutti.all_reduce(x + i).sum(), 0.0)
        return first, inside, tutti.all_gather(x + 1)

    first, inside, last = program(jnp.full((1,), float(rank)))
    assert np.asarray(first).tolist() == list(range(size))
    assert float(inside) == 3 * sum(range(size)) + 3 * size
    assert np.asarray(last).tolist() == [r + 1 for r in range(size)]


@pytest.mark.ranks(2)
def test_effects_barrier_waits_for_calls(world, rank):
    """Of a program that is large enough to be run by another thread, and whose partner comes late."""
    large = jax.jit(lambda x: tutti.all_reduce(jnp.sin(x) @ jnp.cos(x)).sum())
    x = jnp.ones((300, 300))
    large(x).block_until_ready()
    tutti.barrier()
    if rank == 0:
        assert not tutti.recv(src=1).any()
    result = large(x)
    if rank == 1:
        started = not result.is_ready()
        tutti.send(np.zeros(1), dst=0)
        jax.effects_barrier()
        assert started and result.is_ready()
    result.block_until_ready()


@pytest.mark.ranks(2)
def test_a_failure_that_nobody_saw_is_told_once(world, rank):
    from tutti import _native

    group = world.split(0)
    program = jax.jit(lambda x, y: tutti.all_reduce(jnp.tanh(x @ x @ x).sum() + y, group=group))
    x, y = jnp.ones((300, 300)), jnp.ones(2 if rank else 3)
    kept = program(x, y)
    jax.effects_barrier()
    assert "all_reduce" in _native.jax_unseen_failure() and kept is not None
    assert _native.jax_unseen_failure() == ""
    with pytest.raises(tutti.Mismatch), tutti.jax.translated():
        program(x, y).block_until_ready()
    assert _native.jax_unseen_failure() == ""


@pytest.mark.ranks(2)
def test_errors_of_programs_that_run_at_once_are_translated(world, rank):
    """JAX raises ValueError, not its own error, where its C++ side started the program and it failed at once."""
    group = world.split(0)
    program = jax.jit(lambda x: tutti.all_reduce(x, group=group, timeout=20))
    for _ in range(3):
        program(jnp.ones(2)).block_until_ready()
    tutti.barrier()
    group.abort("enough")
    with pytest.raises(tutti.Aborted, match="enough"), tutti.jax.translated():
        program(jnp.ones(2)).block_until_ready()
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match="tutti.Aborted"):
        program(jnp.ones(2)).block_until_ready()
