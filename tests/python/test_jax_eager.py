# test_jax_eager.py: the verbs on JAX arrays outside of programs.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import jax_cases  # noqa: E402
import tutti  # noqa: E402

jax.config.update("jax_enable_x64", True)


@pytest.fixture(autouse=True)
def joined(world):
    """Every test here works in the world."""


@pytest.mark.parametrize("name", jax_cases.NAMES)
def test_arrays_give_what_numpy_gives_and_stay_as_they_were(name, rank, size):
    verb, shape = jax_cases.cases(rank, size)[name]
    x = jax_cases.make(rank, shape)
    given = jnp.asarray(x)
    result = verb(given)
    assert isinstance(result, jax.Array) and result.dtype == given.dtype and result.sharding == given.sharding
    np.testing.assert_array_equal(np.asarray(result), verb(x))
    np.testing.assert_array_equal(np.asarray(given), x)


def test_results_do_not_alias_inputs(size):
    x = jnp.ones(1024)
    for verb in (tutti.all_reduce, tutti.broadcast, tutti.scan):
        assert verb(x).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "float8_e4m3fn", "complex128"])
def test_element_types(dtype, rank, size):
    x = jnp.asarray([0, 1, 1], dtype)
    result = tutti.all_gather(x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(result), np.tile(np.asarray(x), size))


def test_results_of_pending_computations_are_waited_for(rank, size):
    x = jnp.full((300, 300), 1.0 + rank)
    y = jax.jit(lambda x: x @ x)(x)
    expected = sum(300 * (1.0 + other) ** 2 for other in range(size))
    np.testing.assert_allclose(np.asarray(tutti.all_reduce(y)), expected)


def test_async_op_gives_a_jax_array(rank, size):
    works = [tutti.all_reduce(jnp.full((100,), rank + number), async_op=True) for number in range(4)]
    for number, work in enumerate(works):
        result = work.wait(timeout=30)
        assert isinstance(result, jax.Array)
        assert (result == size * (size - 1) / 2 + size * number).all()


def test_lengths_are_learned(rank, size):
    result = tutti.all_gather(jnp.full((rank + 1,), rank), uneven=True)
    assert isinstance(result, jax.Array)
    np.testing.assert_array_equal(np.asarray(result), np.repeat(np.arange(size), np.arange(1, size + 1)))


def test_scatter_takes_its_shape_from_the_root(rank, size):
    x = jnp.arange(2.0 * size) if rank == 0 else jnp.zeros(())
    np.testing.assert_array_equal(np.asarray(tutti.scatter(x)), [2.0 * rank, 2.0 * rank + 1])


@pytest.mark.ranks(2)
def test_messages(rank, size):
    left, right = (rank - 1) % size, (rank + 1) % size
    work = tutti.isend(jnp.full((3,), float(rank)), right)
    received = tutti.recv(left)
    work.wait()
    assert isinstance(received, jax.Array) and (received == left).all()


def test_trees(rank, size):
    tree = {"w": jnp.full((2, 3), rank + 1.0), "b": [jnp.ones(4), (jnp.asarray(rank), None)]}
    result = tutti.all_reduce(tree)
    assert jax.tree.structure(result) == jax.tree.structure(tree)
    assert (result["w"] == size * (size + 1) / 2).all() and result["b"][1][0] == size * (size - 1) / 2


def test_out_is_refused():
    x = jnp.ones(3)
    with pytest.raises(tutti.InvalidArgument, match="out="):
        tutti.all_reduce(x, out=x)
    with pytest.raises(tutti.InvalidArgument, match="out="):
        tutti.recv(out=x, src=0)


def test_large_results_are_taken_over_without_a_copy():
    from tutti._arrays.flat import new_aligned
    from tutti.jax import eager

    memory = new_aligned((1 << 16,), np.dtype("float32"))
    assert eager.taken_over(memory, None).unsafe_buffer_pointer() == memory.ctypes.data
