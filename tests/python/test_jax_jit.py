# test_jax_jit.py: the verbs inside compiled JAX programs: values, control flow, batches, and what is refused.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import jax_cases  # noqa: E402
import references  # noqa: E402
import tutti  # noqa: E402

jax.config.update("jax_enable_x64", True)


@pytest.fixture(autouse=True)
def joined(world):
    """Every test here works in the world."""


def test_a_program_gives_what_numpy_gives(rank, size):
    cases = jax_cases.cases(rank, size)
    inputs = {name: jax_cases.make(rank, shape) for name, (_, shape) in cases.items()}
    given = jax.tree.map(jnp.asarray, inputs)
    results = jax.jit(lambda given: {name: verb(given[name] * 2) + 1 for name, (verb, _) in cases.items()})(given)
    for name, (verb, _) in cases.items():
        np.testing.assert_array_equal(np.asarray(results[name]), verb(inputs[name] * 2) + 1, err_msg=name)
        np.testing.assert_array_equal(np.asarray(given[name]), inputs[name], err_msg=name)


def test_vmap_batches_every_verb_along_any_axis(rank, size):
    cases = jax_cases.cases(rank, size)
    batches = {name: [jax_cases.make(rank, shape, salt) for salt in range(3)] for name, (_, shape) in cases.items()}

    def program(axis):
        return lambda given: {name: jax.vmap(verb, in_axes=axis)(given[name]) for name, (verb, _) in cases.items()}

    first = jax.jit(program(0))({name: np.stack(batch) for name, batch in batches.items()})
    last = jax.jit(program(-1))({name: np.stack(batch, -1) for name, batch in batches.items()})
    for name, (verb, _) in cases.items():
        expected = np.stack([np.asarray(verb(x)) for x in batches[name]])
        np.testing.assert_array_equal(np.asarray(first[name]), expected, err_msg=name)
        np.testing.assert_array_equal(np.asarray(last[name]), expected, err_msg=name)
    x = jnp.asarray(np.stack(batches["all_gather"]))  # and without jit
    np.testing.assert_array_equal(np.asarray(jax.vmap(tutti.all_gather)(x)), np.asarray(first["all_gather"]))


def test_element_types(rank, size):
    names = [
        "bool",
        "int8",
        "uint16",
        "int32",
        "int64",
        "uint64",
        "float16",
        "bfloat16",
        "float32",
        "complex64",
        "complex128",
    ]
    inputs = {name: [references.make_input(other, (5,), name) for other in range(size)] for name in names}
    results = jax.jit(lambda given: [tutti.all_reduce(given[name]) for name in names])(
        {name: jnp.asarray(inputs[name][rank]) for name in names}
    )
    for name, result in zip(names, results, strict=True):
        assert result.dtype == name
        np.testing.assert_array_equal(np.asarray(result), references.reduced(inputs[name], "sum"), err_msg=name)


def test_empty_arrays_are_legal():
    assert jax.jit(tutti.all_reduce)(jnp.zeros((0, 3))).shape == (0, 3)


def test_transposed_operands_are_laid_out_first(rank, size):
    x = jnp.arange(6.0).reshape(2, 3) + rank
    result = jax.jit(lambda x: tutti.all_gather(x.T))(x)
    expected = np.concatenate([(np.arange(6.0).reshape(2, 3) + other).T for other in range(size)])
    np.testing.assert_array_equal(np.asarray(result), expected)


def test_scan_while_cond_and_checkpoint(rank, size):
    def body(carry, step):
        carry = jax.lax.cond(step % 2 == 0, lambda c: tutti.all_reduce(c, op="mean"), lambda c: c * 2, carry)
        return carry, tutti.all_gather(carry[:1])

    def program(x):
        x, seen = jax.lax.scan(body, x, jnp.arange(4))
        x = jax.lax.while_loop(
            lambda c: jnp.max(tutti.all_reduce(c, op="max")) < 100, lambda c: c + tutti.all_reduce(c), x
        )
        return jax.checkpoint(lambda c: tutti.all_reduce(jnp.sin(c)))(x), seen

    result, seen = jax.jit(program)(jnp.full((3,), rank + 1.0))
    value = 4 * (size + 1) / 2  # twice the mean, and twice again
    assert seen.shape == (4, size)
    np.testing.assert_allclose(np.asarray(seen[-1]), value)
    while value < 100:
        value += size * value
    np.testing.assert_allclose(np.asarray(result), size * np.sin(value), rtol=1e-12)


def test_inner_jit_and_fori_loop(rank, size):
    inner = jax.jit(lambda x: tutti.all_reduce(x, op="mean"))
    result = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda i, c: inner(c) + 1, x))(jnp.full((2,), float(rank)))
    np.testing.assert_allclose(np.asarray(result), (size - 1) / 2 + 50)


def test_trees_under_jit(rank, size):
    tree = {"w": jnp.full((2, 3), rank + 1.0), "b": [jnp.ones(4, jnp.float32), (jnp.asarray(rank), None)]}
    result = jax.jit(tutti.all_reduce)(tree)
    assert jax.tree.structure(result) == jax.tree.structure(tree)
    assert (result["w"] == size * (size + 1) / 2).all() and result["b"][1][0] == size * (size - 1) / 2


def test_donated_arrays(rank, size):
    program = jax.jit(lambda x: tutti.all_reduce(x) * 0.5, donate_argnums=0)
    x = jnp.full((1 << 16,), rank + 1.0)
    for _ in range(3):
        x = program(x)
    assert x.shape == (1 << 16,) and (x == (size + 1) / 2 * (size / 2) ** 3).all()


def test_denormal_numbers_survive(rank, size):
    """XLA's threads flush them to zero; the result must not depend on the thread that adds."""
    tiny = np.float32(1e-41)
    x = jnp.asarray(np.full(8, tiny))
    expected = np.full(8, tiny)
    for _ in range(size - 1):
        expected = expected + tiny
    bits = jax.jit(lambda x: jax.lax.bitcast_convert_type(tutti.all_reduce(x), jnp.int32))(x)
    np.testing.assert_array_equal(np.asarray(bits), expected.view(np.int32))


def test_barrier_in_a_program():
    def program(x):
        tutti.jax.barrier()
        return tutti.all_reduce(x)

    assert "barrier" in str(jax.make_jaxpr(program)(1.0))
    jax.jit(program)(jnp.ones(3)).block_until_ready()


def test_shapes_are_known_without_the_others(rank, size):
    """On some ranks only: nothing is sent while a program is traced."""
    if rank == 0:
        assert jax.eval_shape(tutti.all_gather, jax.ShapeDtypeStruct((2, 3), "float32")).shape == (2 * size, 3)


REFUSED = {
    "async_op": (lambda x: tutti.all_reduce(x, async_op=True), tutti.Unsupported, "async_op"),
    "out": (lambda x: tutti.all_reduce(x, out=x), tutti.InvalidArgument, "out="),
    "send": (lambda x: tutti.send(x, 0), tutti.Unsupported, "sendrecv"),
    "recv": (lambda x: tutti.recv(0, like=x), tutti.Unsupported, "sendrecv"),
    "uneven": (lambda x: tutti.all_gather(x, uneven=True), tutti.InvalidArgument, "sizes="),
    "object": (lambda x: tutti.broadcast_object(x), Exception, "(?i)trace"),
    "root": (lambda x: tutti.broadcast(x, root=99), tutti.InvalidArgument, "root"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_traced_is_refused_while_tracing(name):
    program, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        jax.jit(program)(jnp.ones(4))


def test_vmap_of_cond_and_of_while_with_batched_predicates_are_refused_by_name():
    def conditional(x):
        return jax.lax.cond(x > 0, tutti.all_reduce, lambda x: x, x)

    def loop(x):
        return jax.lax.while_loop(lambda c: c < 3, lambda c: c + tutti.all_reduce(c), x)

    with pytest.raises(tutti.Unsupported, match="cond"):
        jax.vmap(conditional)(jnp.arange(3.0))
    with pytest.raises(tutti.Unsupported, match="while_loop"):
        jax.vmap(loop)(jnp.ones(3))


def test_vmap_of_loops_whose_predicate_is_one_for_all(rank, size):
    def loop(x):
        return jax.lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, tutti.all_reduce(c[1], op="mean") + 1), (0, x)
        )[1]

    def conditional(flag, x):
        return jax.lax.cond(flag, tutti.all_reduce, lambda x: x, x)

    x = jnp.asarray([rank, 1.0])
    np.testing.assert_allclose(np.asarray(jax.vmap(loop)(x)), [(size - 1) / 2 + 3, 4])
    np.testing.assert_allclose(np.asarray(jax.vmap(conditional, (None, 0))(True, x)), [size * (size - 1) / 2, size])
