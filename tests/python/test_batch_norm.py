# test_batch_norm.py: normalisation over all ranks' batches, as one process does it over the whole batch.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import tutti


def whole_batch(size, rows=3):
    """Rank r has the r-th part, which differs in size."""
    x = np.random.default_rng(5).normal(3.0, 2.0, (sum(rows + r for r in range(size)), 4, 2))
    begins = np.cumsum([0] + [rows + r for r in range(size)])
    return x, [x[begin:end] for begin, end in zip(begins, begins[1:])]


def reference(torch, x, targets):
    """One process: output, loss, gradients of the input, running statistics."""
    norm = torch.nn.BatchNorm1d(4, dtype=torch.float64)
    x = torch.tensor(x, requires_grad=True)
    loss = (norm(x) * targets).square().sum()
    loss.backward()
    return norm, x.grad, float(loss)


def test_sync_batch_norm_is_that_of_the_whole_batch(rank, size):
    torch = pytest.importorskip("torch")
    whole, parts = whole_batch(size)
    targets = torch.linspace(-1, 2, whole.size, dtype=torch.float64).view(whole.shape)
    plain, x_gradient, loss = reference(torch, whole, targets)
    begin = sum(len(part) for part in parts[:rank])
    norm = tutti.torch.SyncBatchNorm(4, dtype=torch.float64)
    x = torch.tensor(parts[rank], requires_grad=True)
    own = (norm(x) * targets[begin : begin + len(x)]).square().sum()
    own.backward()
    assert tutti.all_reduce(float(own)) == pytest.approx(loss, rel=1e-12)
    torch.testing.assert_close(x.grad, x_gradient[begin : begin + len(x)])
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        torch.testing.assert_close(getattr(norm, name), getattr(plain, name))
    for name in ("weight", "bias"):
        summed = tutti.all_reduce(getattr(norm, name).grad)
        torch.testing.assert_close(summed, getattr(plain, name).grad)
    norm.eval(), plain.eval()
    torch.testing.assert_close(norm(x), plain(x))


class Net:
    """A small network with normalisation of either kind, the same on every rank."""

    def __new__(cls, torch, norm):
        torch.manual_seed(3)
        return torch.nn.Sequential(torch.nn.Linear(5, 4), norm(4), torch.nn.ReLU(), torch.nn.Linear(4, 1))


def test_data_parallel_takes_torchs_sync_batch_norm_over_its_own_group(rank, size):
    torch = pytest.importorskip("torch")
    x = torch.tensor(np.random.default_rng(1).normal(size=(4 * size, 5)), dtype=torch.float32)
    single = Net(torch, torch.nn.BatchNorm1d)
    single(x).square().mean().backward()
    model = Net(torch, torch.nn.SyncBatchNorm)
    layer = model[1]
    parallel = tutti.torch.DataParallel(model)
    assert model[1] is layer and isinstance(layer, tutti.torch.SyncBatchNorm)
    for _ in range(2):  # buckets are filled anew in the second step
        parallel.zero_grad()
        parallel(x[4 * rank : 4 * rank + 4]).square().mean().backward()
    for (name, one), many in zip(single.named_parameters(), model.parameters()):
        torch.testing.assert_close(many.grad, one.grad, msg=lambda text: f"{name}: {text}")


def test_what_cannot_be_with_sync_batch_norm_is_refused_by_name():
    torch = pytest.importorskip("torch")
    model = tutti.torch.DataParallel(Net(torch, torch.nn.SyncBatchNorm))
    with pytest.raises(tutti.Unsupported, match="weigh: the module has SyncBatchNorm"):
        model.weigh(3)
    with pytest.raises(tutti.Unsupported, match="join: the module has SyncBatchNorm"):
        model.join()


def test_too_few_values_are_refused():
    torch = pytest.importorskip("torch")
    group = tutti.world().split(tutti.rank())
    with pytest.raises(tutti.InvalidArgument, match="less than two values"):
        tutti.torch.SyncBatchNorm(3, group=group)(torch.ones(1, 3))


# The same as a function, for the frameworks that have no such layer.


@pytest.mark.parametrize("kind", ["numpy", "torch", "jax", "tensorflow"])
@pytest.mark.parametrize("axis", [0, (0, 2)])
def test_batch_statistics_are_those_of_the_whole_batch(kind, axis, rank, size):
    import kinds

    if kind not in kinds.ALL:
        pytest.skip(f"{kind} is not installed")
    whole, parts = whole_batch(size)
    mean, variance = tutti.batch_statistics(kinds.make(kind, parts[rank].astype("f4")), axis=axis)
    np.testing.assert_allclose(kinds.numbers(mean), whole.mean(axis, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(kinds.numbers(variance), whole.var(axis, keepdims=True), rtol=1e-4)


def test_batch_statistics_inside_jit_with_gradients(rank, size):
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    whole = np.random.default_rng(2).normal(1.0, 1.5, (2 * size, 3)).astype("f4")

    def loss_of(weight, x, statistics):
        y = x * weight
        mean, variance = statistics(y)
        return jnp.mean(jnp.tanh((y - mean) / jnp.sqrt(variance + 1e-3)) ** 3)

    def alone(y):
        return y.mean(0, keepdims=True), y.var(0, keepdims=True)

    weight = jnp.array([0.5, -1.0, 2.0])
    expected = jax.grad(loss_of)(weight, whole, alone)
    own = jax.jit(jax.grad(loss_of), static_argnums=2)(weight, whole[2 * rank : 2 * rank + 2], tutti.batch_statistics)
    np.testing.assert_allclose(tutti.average(own), expected, rtol=1e-3, atol=1e-5)


def test_batch_statistics_inside_tf_function_with_gradients(rank, size):
    tf = pytest.importorskip("tensorflow")
    whole = np.random.default_rng(2).normal(1.0, 1.5, (2 * size, 3)).astype("f4")
    weight = tf.constant([0.5, -1.0, 2.0])

    def gradient_of(x, statistics):
        with tf.GradientTape() as tape:
            tape.watch(weight)
            y = x * weight
            mean, variance = statistics(y)
            loss = tf.reduce_mean(tf.tanh((y - mean) / tf.sqrt(variance + 1e-3)) ** 3)
        return tape.gradient(loss, weight)

    def alone(y):
        return tf.reduce_mean(y, 0, keepdims=True), tf.math.reduce_variance(y, 0, keepdims=True)

    expected = gradient_of(tf.constant(whole), alone)
    step = tf.function(lambda x: gradient_of(x, tutti.batch_statistics), input_signature=[tf.TensorSpec([None, 3])])
    own = step(tf.constant(whole[2 * rank : 2 * rank + 2]))
    np.testing.assert_allclose(tutti.average(own), expected, rtol=1e-3, atol=1e-5)


def test_batch_statistics_say_what_is_wrong():
    with pytest.raises(tutti.InvalidArgument, match="have no mean among them"):
        tutti.batch_statistics(np.ones((2, 3), int))
    with pytest.raises(tutti.InvalidArgument, match="axis=2 is none of the 2 axes"):
        tutti.batch_statistics(np.ones((2, 3)), axis=2)
