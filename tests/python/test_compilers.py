# test_compilers.py: model_parallel and pmap under jit, tf.function and torch.compile(fullgraph=True), with gradients.
# SPDX-License-Identifier: Apache-2.0
import functools

import kinds
import numpy as np
import pytest

import tutti

mp = tutti.model_parallel
ROWS, FEATURES, OUTPUTS, WORDS = 6, 4, 12, 24  # what is cut without total= is divisible by 1, 2, 3 and 4 ranks


@pytest.fixture(autouse=True)
def one_group(world):
    mp.init()
    yield
    mp.destroy()


def compiled(kind, function):
    if kind != "torch":
        return kinds.compiled(kind, function)
    import torch

    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def part(x, axis):
    return np.array_split(x, mp.group_size(), axis)[mp.group().rank]


def squares(kind, y):
    """A scalar in which every element counts differently."""
    if kind == "tensorflow":
        import tensorflow as tf

        return tf.reduce_sum(y * y)
    return (y * y).sum()


def layer(**options):
    return lambda x, w, b: mp.linear(x, w, b, **options)


CASES = {
    "copy": (mp.copy, lambda: [numbers(3, 5)]),
    "reduce": (mp.reduce, lambda: [numbers(3, 5)]),
    "scatter": (lambda x: mp.scatter(x, 0), lambda: [numbers(7, 3)]),
    "gather, equal parts that nobody announced": (mp.gather, lambda: [numbers(3, 2)]),
    "gather, uneven": (lambda x: mp.gather(x, 0, total=7), lambda: [part(numbers(7, 3), 0)]),
    "columns": (
        layer(dim=1),
        lambda: [numbers(ROWS, FEATURES), part(numbers(OUTPUTS, FEATURES), 0), part(numbers(OUTPUTS), 0)],
    ),
    "columns, uneven": (
        layer(dim=1, total=7),
        lambda: [numbers(ROWS, FEATURES), part(numbers(7, FEATURES), 0), part(numbers(7), 0)],
    ),
    "rows": (
        layer(dim=0), lambda: [numbers(ROWS, 7), part(numbers(OUTPUTS, 7), 1), numbers(OUTPUTS)]
    ),
    "cross entropy": (
        lambda x, indices: mp.cross_entropy(x, indices),
        lambda: [part(numbers(ROWS, WORDS), 1)],
    ),
    "embedding": (
        lambda table, indices: mp.embedding(indices, table),
        lambda: [part(numbers(WORDS, FEATURES), 0)],
    ),
    "pmap": (tutti.pmap(lambda x: x * 2 + 1), lambda: [numbers(7, 3)]),
    "pmap, two arguments": (
        tutti.pmap(lambda x, y: (x * y[0], x + 1), in_axes=(1, None), out_axes=1), lambda: [numbers(3, 7), numbers(2)]
    ),
    "pmap, by name": (tutti.pmap(lambda x, w: x * w, in_axes={"x": 0}), lambda: [numbers(7, 3), numbers(3)]),
}


def loss_of(kind, function, *arrays):
    result = function(*arrays)
    parts = result if isinstance(result, tuple) else (result,)
    return functools.reduce(lambda a, b: a + b, [squares(kind, y) for y in parts])


@pytest.mark.deadline(240)
@pytest.mark.parametrize("kind", kinds.DIFFERENTIABLE)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_eager_code(kind, name):
    function, arguments = CASES[name]
    if name in ("cross entropy", "embedding"):
        function = functools.partial(function, indices=kinds.make(kind, np.arange(ROWS) % WORDS))
    loss = functools.partial(loss_of, kind, function)
    expected, expected_grads = kinds.value_and_grads(kind, loss, *arguments())
    found, grads = kinds.value_and_grads(kind, compiled(kind, loss), *arguments())
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    for mine, theirs in zip(grads, expected_grads, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_the_modules_compile(size):
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    torch.manual_seed(3)
    model = torch.nn.Sequential(
        tutti.torch.ParallelEmbedding(10, 6),
        tutti.torch.ParallelLinear(6, 7, dim=1, whole_output=False),
        torch.nn.GELU(),
        tutti.torch.ParallelLinear(7, 5, dim=0, whole_input=False),
    )
    words = torch.arange(8) % 10
    expected = model(words)
    found = torch.compile(model, fullgraph=True, backend="aot_eager")(words)
    torch.testing.assert_close(found, expected)


def test_an_axis_that_is_not_there_is_named_while_tracing(size):
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    with pytest.raises(tutti.InvalidArgument, match="dim=3 is none of the 2 axes"):
        torch.compile(lambda x: mp.scatter(x, 3), fullgraph=True, backend="aot_eager")(torch.ones(2, 2))


def test_a_length_that_tf_function_does_not_know_is_asked_for(size):
    tf = pytest.importorskip("tensorflow")
    program = tf.function(mp.scatter, input_signature=[tf.TensorSpec([2, None], tf.float32)])
    with pytest.raises(tutti.InvalidArgument, match="input_signature"):
        program(tf.ones([2, 3]))
