# test_model_parallel.py: a layer over several ranks is the layer, forward and backward, however the sizes divide.
# SPDX-License-Identifier: Apache-2.0
import kinds
import numpy as np
import pytest

import tutti

mp = tutti.model_parallel


@pytest.fixture(autouse=True)
def one_group(world):
    mp.init()
    yield
    mp.destroy()


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def part(x, axis):
    """This rank's part, cut by NumPy."""
    return np.array_split(x, mp.group_size(), axis)[mp.group().rank]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


def test_groups_come_and_go(world, rank, size):
    assert mp.is_initialized() and mp.group_size() == size and mp.rank() == rank and mp.world_size() == size
    assert mp.group().size == size and mp.data_group().size == 1
    with pytest.raises(tutti.InvalidArgument, match="destroy"):
        mp.init()
    mp.destroy()
    assert not mp.is_initialized()
    with pytest.raises(tutti.InvalidArgument, match="init"):
        mp.group()
    with pytest.raises(tutti.InvalidArgument, match="cannot be cut"):
        mp.init(group_size=size + 1)
    mp.init(group_size=1)
    assert mp.group().size == 1 and mp.data_group().size == size
    mp.destroy()
    mp.init()


@pytest.mark.parametrize("kind", kinds.ALL)
@pytest.mark.parametrize("dim", (0, 1, -1, None))
def test_scatter_and_gather(kind, dim, size):
    x = numbers(7, 5)
    own = mp.scatter(kinds.make(kind, x), dim=dim)
    close(kinds.numbers(own), x if dim is None else part(x, dim))
    back = mp.gather(own, dim=dim)
    close(kinds.numbers(back), x)
    assert kinds.is_kind(kind, back)
    if dim is not None:
        close(kinds.numbers(mp.gather(own, dim=dim, total=x.shape[dim])), x)


@pytest.mark.parametrize("kind", kinds.ALL)
def test_reduce_and_copy(kind, rank, size):
    x = kinds.make(kind, np.full((2, 3), rank + 1, "f4"))
    close(kinds.numbers(mp.reduce(x)), np.full((2, 3), size * (size + 1) / 2))
    close(kinds.numbers(mp.copy(x)), np.full((2, 3), rank + 1))


def test_reduce_in_place(rank, size):
    for kind in [kind for kind in kinds.PRESENT if kind in ("numpy", "torch")]:  # in the same order on every rank
        x = kinds.make(kind, np.array([1, 2]) + 2 * rank)
        mp.reduce(x, out=x)
        assert kinds.numbers(x).tolist() == [sum(1 + 2 * r for r in range(size)), sum(2 + 2 * r for r in range(size))]


@pytest.mark.parametrize("kind", kinds.DIFFERENTIABLE)
def test_gradients_come_in_pairs(kind, rank, size):
    x, scale = numbers(7, 3), rank + 1.0
    weights = numbers(7, 3, seed=1)
    whole, own = kinds.make(kind, weights), kinds.make(kind, part(weights, 0))
    total = _sum(kind)
    _, (grad,) = kinds.value_and_grads(kind, lambda x: total(mp.copy(x) * scale), x)
    close(grad, np.full((7, 3), size * (size + 1) / 2))
    _, (grad,) = kinds.value_and_grads(kind, lambda x: total(mp.reduce(x * scale) * whole), x)
    close(grad, weights * scale)
    _, (grad,) = kinds.value_and_grads(kind, lambda x: total(mp.scatter(x, 0) * own), x)
    close(grad, weights)
    _, (grad,) = kinds.value_and_grads(kind, lambda x: total(mp.gather(x, 0, total=7) * whole), part(x, 0))
    close(grad, part(weights, 0))


def _tf_sum(x):
    import tensorflow as tf

    return tf.reduce_sum(x)


def _sum(kind):
    return _tf_sum if kind == "tensorflow" else lambda x: x.sum()


def test_numpy_has_explicit_pairs(rank, size):
    x, g = numbers(7, 3), numbers(7, 3, seed=1)
    close(mp.copy.backward(np.ones(3, "f4")), np.full(3, size))
    close(mp.reduce.backward(g), g)
    close(mp.scatter.backward(part(g, 0), 0), g)
    close(mp.gather.backward(g, 0), part(g, 0))
    # A row layer by hand: y = reduce(x_part · w_partᵀ).
    w = numbers(4, 3, seed=2)
    own = mp.scatter(x, -1)
    y = mp.reduce(own @ part(w, 1).T)
    close(y, x @ w.T)
    dy = numbers(7, 4, seed=3)
    d_part = mp.reduce.backward(dy) @ part(w, 1)
    close(mp.scatter.backward(d_part, -1), dy @ w)


# One dense network, computed whole by NumPy with float64 and in parts by every framework.
FEATURES, HIDDEN, CLASSES, ROWS = 6, 7, 5, 9


def dense(x, w1, b1, w2, b2, targets):
    h = np.tanh(x @ w1.T + b1)
    logits = h @ w2.T + b2
    shifted = np.exp(logits - logits.max(-1, keepdims=True))
    p = shifted / shifted.sum(-1, keepdims=True)
    loss = -np.log(p[np.arange(len(x)), targets]).mean()
    dlogits = (p - np.eye(p.shape[1])[targets]) / len(x)
    dh = dlogits @ w2 * (1 - h**2)
    return loss, (dh @ w1, dh.T @ x, dh.sum(0), dlogits.T @ h, dlogits.sum(0))


def tanh(kind, x):
    if kind == "torch":
        return x.tanh()
    if kind == "jax":
        import jax.numpy as jnp

        return jnp.tanh(x)
    if kind == "tensorflow":
        import tensorflow as tf

        return tf.tanh(x)
    return np.tanh(x)


@pytest.mark.parametrize("kind, is_compiled", (("torch", False), ("jax", True), ("tensorflow", False), ("tensorflow", True)))
def test_columns_then_rows_then_split_classes_equal_the_dense_network(kind, is_compiled, size):
    pytest.importorskip(kind)
    if size > CLASSES:
        return
    x, w1, b1 = numbers(ROWS, FEATURES), numbers(HIDDEN, FEATURES, seed=1), numbers(HIDDEN, seed=2)
    w2, b2 = numbers(CLASSES, HIDDEN, seed=3), numbers(CLASSES, seed=4)
    targets = np.arange(ROWS) % CLASSES
    expected, grads = dense(*(a.astype("f8") for a in (x, w1, b1, w2, b2)), targets)

    def loss(x, w1, b1, w2, b2):
        h = tanh(kind, mp.linear(x, w1, b1, dim=1, total=HIDDEN))  # whole again
        logits = mp.linear(h, w2, b2, dim=1, whole_output=False)
        return mp.cross_entropy(logits, kinds.make(kind, targets), classes=CLASSES)

    run = kinds.compiled(kind, loss) if is_compiled else loss
    found, own = kinds.value_and_grads(kind, run, x, part(w1, 0), part(b1, 0), part(w2, 0), part(b2, 0))
    close(found, expected)
    for mine, whole, axis in zip(own, grads, (None, 0, 0, 0, 0)):
        close(mine, whole if axis is None else part(whole, axis))


@pytest.mark.parametrize("kind", kinds.DIFFERENTIABLE)
def test_rows_take_whole_or_split_inputs(kind, size):
    x, w, b, g = numbers(4, 7), numbers(3, 7, seed=1), numbers(3, seed=2), numbers(4, 3, seed=3)
    total, slope = _sum(kind), kinds.make(kind, g)
    _, (dx, dw, db) = kinds.value_and_grads(
        kind, lambda x, w, b: total(mp.linear(x, w, b, dim=0) * slope), x, part(w, 1), b)
    close(dx, g @ w), close(dw, part(g.T @ x, 1)), close(db, g.sum(0))
    _, (dx, dw) = kinds.value_and_grads(
        kind, lambda x, w: total(mp.linear(x, w, dim=0, whole_input=False) * slope), part(x, 1), part(w, 1))
    close(dx, part(g @ w, 1)), close(dw, part(g.T @ x, 1))


@pytest.mark.parametrize("kind", kinds.ALL)
@pytest.mark.parametrize("dim", (0, 1))
def test_embeddings(kind, dim, size):
    table, indices = numbers(11, 6), np.array([[0, 10, 3], [5, 5, 1]])
    own = part(table, dim)
    look = lambda t: mp.embedding(kinds.make(kind, indices), t, dim=dim, total=table.shape[dim])  # noqa: E731
    close(kinds.numbers(look(kinds.make(kind, own))), table[indices])
    if kind == "numpy":
        return
    g = numbers(2, 3, 6, seed=1)
    _, (grad,) = kinds.value_and_grads(kind, lambda t: _sum(kind)(look(t) * kinds.make(kind, g)), own)
    whole = np.zeros_like(table)
    np.add.at(whole, indices, g)
    close(grad, part(whole, dim))


def test_cross_entropy_ignores_and_reduces_as_asked(size):
    torch = pytest.importorskip("torch")
    logits, targets = numbers(6, 4), np.array([0, -100, 3, 1, -100, 2])
    for reduction in ("mean", "sum", "none"):
        expected = torch.nn.functional.cross_entropy(torch.from_numpy(logits), torch.from_numpy(targets), reduction=reduction)
        for kind in kinds.PRESENT:
            found = mp.cross_entropy(
                kinds.make(kind, part(logits, 1)), kinds.make(kind, targets), classes=4, reduction=reduction)
            close(kinds.numbers(found), expected.numpy())
    with pytest.raises(tutti.InvalidArgument, match="reduction"):
        mp.cross_entropy(logits, targets, reduction="median")


@pytest.mark.ranks(2)
def test_uneven_parts_that_nobody_announced_are_refused_on_every_rank(rank, size):
    own = part(numbers(3, 2 * size + 1), 1)
    with pytest.raises(tutti.InvalidArgument, match="in all"):
        mp.cross_entropy(own, np.zeros(3, int))
    with pytest.raises(tutti.InvalidArgument, match="gives this"):
        mp.gather(own, 1, total=own.shape[1] + 100)
    with pytest.raises(tutti.InvalidArgument, match="use fewer"):
        mp.cross_entropy(numbers(3, 1 if rank == 0 else 0), np.zeros(3, int), classes=1)
    assert tutti.all_reduce(1) == size


def test_bad_arguments_are_refused():
    with pytest.raises(tutti.InvalidArgument, match="dim=2"):
        mp.scatter(numbers(2, 2), dim=2)
    with pytest.raises(tutti.InvalidArgument, match="dim=5"):
        mp.linear(numbers(2, 2), numbers(2, 2), dim=5)
    with pytest.raises(tutti.InvalidArgument, match="dim=5"):
        mp.embedding(np.zeros(1, int), numbers(2, 2), dim=5)
