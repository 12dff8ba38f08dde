# test_gradients_agree.py: gradients of torch, JAX and TensorFlow against finite differences of the sum of all ranks'
# losses, and against each other.
# SPDX-License-Identifier: Apache-2.0
import functools
import os

import numpy as np
import pytest

import tutti
from verb_cases import CASES, SELECTING, weights

STEP = 1e-5
SOAK = bool(os.environ.get("TUTTI_SOAK"))
ALL = CASES + SELECTING
# Each way back that is not another's with other numbers; the others are for ./dev soak where compilers take their time.
ONE_OF_EACH_KIND = [
    "all_reduce mean", "all_reduce max", "reduce sum", "broadcast", "all_gather uneven", "gather", "reduce_scatter max",
    "scatter", "all_to_all across axes", "permute", "sendrecv", "exscan",
]  # fmt: skip
DISTINCT = [case for case in ALL if SOAK or case.name in ONE_OF_EACH_KIND]


def loss_of(case, x, rank, size):
    y = np.asarray(case.run(x, rank, size))
    return float(np.sum(weights(rank, y.shape) * np.sin(y)))


def finite_differences(case, rank, size):
    """d(sum of all ranks' losses)/dx of this rank's x: every rank's elements are moved in turn, and everybody calls."""
    x = case.input(rank, size)
    mine = np.zeros(x.shape)
    for mover in range(size):
        shape = case.shape(mover, size)
        for place in np.ndindex(*shape):
            sums = []
            for step in (STEP, -STEP):
                moved = x.copy()
                if rank == mover:
                    moved[place] += step
                sums.append(tutti.all_reduce(loss_of(case, moved, rank, size)))
            if rank == mover:
                mine[place] = (sums[0] - sums[1]) / (2 * STEP)
    return mine


def torch_gradient(case, rank, size):
    torch = pytest.importorskip("torch")
    x = torch.tensor(case.input(rank, size), requires_grad=True)
    y = case.run(x, rank, size)
    (torch.tensor(weights(rank, y.shape)) * torch.sin(y)).sum().backward()
    return x.grad.numpy()


def jax_loss(case, rank, size):
    jnp = pytest.importorskip("jax").numpy

    def loss(x):
        y = case.run(x, rank, size)
        return jnp.sum(jnp.asarray(weights(rank, y.shape), x.dtype) * jnp.sin(y))

    return loss


def jax_gradient(case, rank, size):
    jax = pytest.importorskip("jax")
    return np.asarray(jax.grad(jax_loss(case, rank, size))(jax.numpy.asarray(case.input(rank, size), "float32")))


@functools.cache
def compiled_jax_gradients(rank, size):
    """Of all cases in one program: many collectives, independent of each other, there and back."""
    jax = pytest.importorskip("jax")

    def gradients(xs):
        return {case.name: jax.grad(jax_loss(case, rank, size))(xs[case.name]) for case in DISTINCT}

    inputs = {case.name: jax.numpy.asarray(case.input(rank, size), "float32") for case in DISTINCT}
    return jax.tree.map(np.asarray, jax.jit(gradients)(inputs))


def tensorflow_loss(case, rank, size):
    tf = pytest.importorskip("tensorflow")

    def loss(x):
        y = case.run(x, rank, size)
        return tf.reduce_sum(tf.constant(weights(rank, y.shape)) * tf.sin(y))

    return loss


def tensorflow_gradient_of(case, x, rank, size):
    tf = pytest.importorskip("tensorflow")
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = tensorflow_loss(case, rank, size)(x)
    return tape.gradient(value, x)


def tensorflow_gradient(case, rank, size):
    tf = pytest.importorskip("tensorflow")
    return tensorflow_gradient_of(case, tf.constant(case.input(rank, size)), rank, size).numpy()


@functools.cache
def tensorflow_function_gradients(rank, size):
    """Of all cases in one function."""
    tf = pytest.importorskip("tensorflow")

    @tf.function
    def gradients(xs):
        return {case.name: tensorflow_gradient_of(case, xs[case.name], rank, size) for case in DISTINCT}

    got = gradients({case.name: tf.constant(case.input(rank, size)) for case in DISTINCT})
    return {name: gradient.numpy() for name, gradient in got.items()}


WAYS = {
    "torch": torch_gradient,
    "jax": jax_gradient,
    "tensorflow": tensorflow_gradient,
}
COMPILED_WAYS = {
    "jax under jit": lambda case, rank, size: compiled_jax_gradients(rank, size)[case.name],
    "tensorflow in a function": lambda case, rank, size: tensorflow_function_gradients(rank, size)[case.name],
}


def gradients_by_way(case, rank, size):
    ways = WAYS | COMPILED_WAYS if case in DISTINCT else WAYS
    return {way: gradient(case, rank, size) for way, gradient in ways.items()}


def close(way, a, b, **options):
    single = "jax" in way  # computes in float32 unless told otherwise
    np.testing.assert_allclose(
        a, b, rtol=2e-4 if single else 1e-7, atol=2e-5 if single else 1e-7, err_msg=way, **options
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_are_those_of_the_sum_of_all_losses(case, world, rank, size):
    expected = finite_differences(case, rank, size)
    gradients = gradients_by_way(case, rank, size)
    for way, gradient in gradients.items():
        assert gradient.shape == expected.shape, way
        close(way, gradient, expected)
    first = gradients["torch"]
    for way, gradient in gradients.items():
        close(way, gradient, first)


def shared_among_holders(case, rank, size):
    """For min and max where several ranks hold the value: the gradient that a small step of one does not show."""
    inputs = np.stack([case.input(other, size) for other in range(size)])
    extreme = inputs.max(0) if "max" in case.name else inputs.min(0)
    results = [np.asarray(part) for part in tutti.all_gather_object(np.asarray(case.run(inputs[rank], rank, size)))]
    slopes = [weights(other, y.shape) * np.cos(y) for other, y in enumerate(results)]
    if case.name.startswith("all_reduce"):
        arriving = sum(slopes)
    elif case.name.startswith("reduce_scatter"):
        arriving = np.concatenate(slopes)
    else:
        arriving = slopes[0]
    holds = inputs == extreme
    mine = arriving * holds[rank] / holds.sum(0)
    off_root = case.name.startswith("reduce ") and rank != 0
    return mine + slopes[rank] if off_root else mine


@pytest.mark.parametrize("case", SELECTING, ids=str)
def test_ranks_that_hold_the_same_extreme_share_its_gradient(case, world, rank, size):
    expected = shared_among_holders(case, rank, size)
    for way, gradient in gradients_by_way(case, rank, size).items():
        close(way, gradient, expected)


# Second derivatives: of a function that is not linear in what the collective moves.


def second_order_torch(case, rank, size):
    torch = pytest.importorskip("torch")
    x = torch.tensor(case.input(rank, size), requires_grad=True)
    y = case.run(x, rank, size)
    loss = (torch.tensor(weights(rank, y.shape)) * torch.sin(y)).sum()
    (g,) = torch.autograd.grad(loss, x, create_graph=True)
    return torch.autograd.grad((g**2).sum(), x)[0].numpy()


def second_order_jax(case, rank, size):
    jax = pytest.importorskip("jax")
    first = jax.grad(jax_loss(case, rank, size))
    second = jax.grad(lambda x: jax.numpy.sum(first(x) ** 2))
    return np.asarray(second(jax.numpy.asarray(case.input(rank, size), "float32")))


def second_order_tensorflow(case, rank, size):
    tf = pytest.importorskip("tensorflow")
    x = tf.constant(case.input(rank, size))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            value = tensorflow_loss(case, rank, size)(x)
        loss = tf.reduce_sum(inner.gradient(value, x) ** 2)
    return outer.gradient(loss, x).numpy()


SECOND_ORDER = {"torch": second_order_torch, "jax": second_order_jax, "tensorflow": second_order_tensorflow}


def second_differences(case, rank, size):
    """d(sum of all ranks' squared gradients)/dx by finite differences of torch's first derivatives."""
    x = case.input(rank, size)
    mine = np.zeros(x.shape)
    for mover in range(size):
        for place in np.ndindex(*case.shape(mover, size)):
            sums = []
            for step in (STEP, -STEP):
                moved = x.copy()
                if rank == mover:
                    moved[place] += step
                gradient = torch_gradient(_At(case, moved), rank, size)
                sums.append(tutti.all_reduce(float(np.sum(gradient**2))))
            if rank == mover:
                mine[place] = (sums[0] - sums[1]) / (2 * STEP)
    return mine


class _At:
    """A case with another input on this rank."""

    def __init__(self, case, x):
        self.run = case.run
        self.input = lambda rank, size: x


@pytest.mark.parametrize("case", [case for case in CASES if case in DISTINCT], ids=str)
def test_second_derivatives_agree(case, world, rank, size):
    expected = second_differences(case, rank, size)
    for way, second in SECOND_ORDER.items():
        single = way == "jax"
        np.testing.assert_allclose(
            second(case, rank, size),
            expected,
            rtol=1e-3 if single else 1e-5,
            atol=1e-4 if single else 1e-6,
            err_msg=way,
        )
