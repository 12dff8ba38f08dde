# test_seeds.py: the samples of the documents that Tutti grew from, in its own words, with the results they promise.
# SPDX-License-Identifier: Apache-2.0
import importlib
import math

import numpy as np
import pytest

import tutti


def arrays_of(framework):
    """How to make an array of a framework from NumPy's, and back."""
    module = pytest.importorskip(framework)
    if framework == "numpy":
        return np.asarray, np.asarray
    if framework == "torch":
        return lambda x: module.from_numpy(np.array(x)), lambda x: x.detach().numpy()
    if framework == "jax":
        return importlib.import_module("jax.numpy").asarray, np.asarray
    return module.constant, lambda x: x.numpy()


FRAMEWORKS = ["numpy", "torch", "jax", "tensorflow"]


def gelu_of(framework):
    if framework == "numpy":
        return lambda x: (0.5 * x * (1 + np.vectorize(math.erf, otypes=["float32"])(x / math.sqrt(2)))).astype(
            "float32"
        )
    if framework == "torch":
        return importlib.import_module("torch.nn.functional").gelu
    if framework == "jax":
        return importlib.import_module("jax").nn.gelu
    return importlib.import_module("tensorflow").nn.gelu


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_parallel_gelu_is_pmap(world, framework):
    make, read = arrays_of(framework)
    gelu = gelu_of(framework)
    context = tutti.context()

    def parallel_gelu(x, context):
        rows = x.shape[0] // context.world_size
        out = gelu(x[context.rank * rows : (context.rank + 1) * rows])
        return tutti.all_gather(out)

    x = make(np.random.default_rng(0).normal(size=(context.world_size, 10)).astype("float32"))
    out1 = parallel_gelu(x, context)
    out2 = tutti.pmap(gelu)(x)
    assert type(out1) is type(x) is type(out2) and tuple(out1.shape) == (context.world_size, 10)
    assert (read(out1) == read(out2)).all()
    np.testing.assert_allclose(read(out2), read(gelu(x)), rtol=1e-6)


def test_several_frameworks_in_one_run(world, rank, size):
    """Where changing the framework in the middle of a program was not supported."""
    for framework in FRAMEWORKS * 2:
        make, read = arrays_of(framework)
        y = tutti.all_reduce(make(np.full((2, 3), rank + 1, "float32")))
        assert (read(y) == size * (size + 1) / 2).all()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_all_reduce_takes_an_array_or_a_list(world, framework):
    make, read = arrays_of(framework)
    context = tutti.context()
    rank, size = context.rank, context.size
    assert context.root_rank == 0 and context.local_rank == rank and context.local_size == size
    x = make(np.ones(shape=(4, 4), dtype="float32") * (rank + 1))
    expected = np.full((4, 4), sum(range(1, size + 1)), "float32")
    np.testing.assert_array_equal(read(tutti.all_reduce(x)), expected)
    (y,) = tutti.all_reduce([x])
    np.testing.assert_array_equal(read(y), expected)


def test_the_operators_can_be_listed(world):
    assert "all_reduce" in tutti.verbs() and "all_reduce" in dir(tutti)


def test_the_connector_knows_who_is_there(rank, size):
    connector = tutti.connector()
    assert (connector.size, connector.rank, connector.local_size, connector.local_rank) == (size, rank, size, rank)
    connector.barrier()
    assert connector.broadcast("hello" if rank == 0 else None) == "hello"


@pytest.mark.ranks(2)
def test_blocking_messages(rank):
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        tutti.send(tensor, dst=1)
    elif rank == 1:
        tutti.recv(out=tensor, src=0)
    assert tensor[0] == (1 if rank < 2 else 0)


@pytest.mark.ranks(2)
def test_messages_that_do_not_block(rank):
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        request = tutti.isend(tensor, dst=1)
        request.wait()
    elif rank == 1:
        request = tutti.irecv(out=tensor, src=0)
        request.wait()
    assert tensor[0] == (1 if rank < 2 else 0)


@pytest.mark.ranks(2)
def test_all_reduce_in_a_group(rank):
    torch = pytest.importorskip("torch")
    if rank < 2:
        group = tutti.Group([0, 1])
        tensor = torch.ones(1)
        tutti.all_reduce(tensor, op="sum", group=group, out=tensor)
        assert tensor[0] == 2


def test_the_six_collectives(rank, size):
    torch = pytest.importorskip("torch")
    mine = torch.full((2,), float(rank))
    assert tutti.broadcast(mine, root=0).tolist() == [0, 0]
    total = float(sum(range(size)))
    assert tutti.reduce(mine, root=0, op="sum").tolist() == ([total] * 2 if rank == 0 else [rank] * 2)
    for op, expected in [("sum", total), ("product", 0.0), ("max", size - 1.0), ("min", 0.0)]:
        assert tutti.all_reduce(mine, op=op).tolist() == [expected] * 2
    parts = torch.arange(2.0 * size).reshape(size, 2) if rank == 0 else None
    assert tutti.scatter(parts, root=0, axis=None).tolist() == [2.0 * rank, 2 * rank + 1]
    gathered = tutti.gather(mine, root=0, axis=None)
    if rank == 0:
        assert gathered.tolist() == [[r, r] for r in range(size)]
    assert tutti.all_gather(mine, axis=None).tolist() == [[r, r] for r in range(size)]
    tutti.barrier()


def test_training_with_averaged_gradients(rank, size):
    """Synchronous stochastic gradient descent: each rank its part of the batch, one model everywhere."""
    torch = pytest.importorskip("torch")
    samples, steps = 12 * size, 12
    generator = torch.Generator().manual_seed(1234)
    data = torch.randn(samples, 4, generator=generator)
    target = (data.sum(1) > 0).long()

    def make_net():
        torch.manual_seed(1234)
        return torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2), torch.nn.LogSoftmax(1)
        )

    def average_gradients(model):
        for parameter in model.parameters():
            tutti.all_reduce(parameter.grad, op="sum", out=parameter.grad)
            parameter.grad /= size

    def train(rows, average):
        model = make_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
        losses = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = torch.nn.functional.nll_loss(model(data[rows]), target[rows])
            loss.backward()
            average(model)
            optimizer.step()
            losses.append(tutti.all_reduce(loss.item(), op="mean"))
        return losses, [parameter.detach() for parameter in model.parameters()]

    mine = slice(rank * samples // size, (rank + 1) * samples // size)
    losses, weights = train(mine, average_gradients)
    whole_losses, whole_weights = train(slice(None), lambda model: None)
    np.testing.assert_allclose(losses, whole_losses, rtol=1e-4)
    assert losses[-1] < 0.8 * losses[0]
    for one, other in zip(weights, whole_weights, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.ranks(2, 2)
def test_shapes_of_model_parallel_verbs(world, rank):
    torch = pytest.importorskip("torch")
    mp = tutti.model_parallel
    mp.init(group_size=2)
    try:
        assert mp.is_initialized() and (mp.rank(), mp.world_size(), mp.group_size()) == (rank, 2, 2)
        assert mp.group().size == 2
        x = torch.ones(6, 8)
        assert mp.scatter(x, dim=0).shape == (3, 8) and mp.scatter(x, dim=1).shape == (6, 4)
        assert mp.gather(x, dim=0).shape == (12, 8) and mp.gather(x, dim=1).shape == (6, 16)
        tensor = torch.arange(2, dtype=torch.int64) + 1 + 2 * rank
        assert mp.reduce(tensor).tolist() == [4, 6]
        x.requires_grad_()
        y = mp.copy(x)
        assert torch.equal(y, x)
        (y * (rank + 1)).sum().backward()
        assert (x.grad == 3).all()  # summed over the ranks
    finally:
        mp.destroy()
    assert not mp.is_initialized()
