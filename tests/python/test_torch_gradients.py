# test_torch_gradients.py: gradients through the verbs, against finite differences of the sum of all ranks' losses.
# SPDX-License-Identifier: Apache-2.0
import pytest

torch = pytest.importorskip("torch")

import tutti  # noqa: E402
from torch_losses import check_gradient, check_second_gradient, input_of, loss_of  # noqa: E402


def ring(size):
    return [(r, (r + 1) % size) for r in range(size)]


# Name → (shape of the input on rank r of n, function of the input, rank and size).
CASES = {
    "all_reduce sum": (lambda r, n: (3,), lambda x, r, n: tutti.all_reduce(x)),
    "all_reduce mean": (lambda r, n: (2, 2), lambda x, r, n: tutti.all_reduce(x, op="mean")),
    "all_reduce premul": (lambda r, n: (3,), lambda x, r, n: tutti.all_reduce(x, op=tutti.premul(0.3))),
    "all_reduce min": (lambda r, n: (4,), lambda x, r, n: tutti.all_reduce(x, op="min")),
    "all_reduce max": (lambda r, n: (4,), lambda x, r, n: tutti.all_reduce(x, op="max")),
    "all_reduce of a transposed view": (lambda r, n: (2, 3), lambda x, r, n: tutti.all_reduce(x.t())),
    "reduce": (lambda r, n: (3,), lambda x, r, n: tutti.reduce(x, root=n - 1)),
    "reduce mean": (lambda r, n: (3,), lambda x, r, n: tutti.reduce(x, root=n - 1, op="mean")),
    "reduce max": (lambda r, n: (4,), lambda x, r, n: tutti.reduce(x, root=n - 1, op="max")),
    "broadcast": (lambda r, n: (3,), lambda x, r, n: tutti.broadcast(x, root=n - 1)),
    "all_gather": (lambda r, n: (2, 2), lambda x, r, n: tutti.all_gather(x)),
    "all_gather axis 1": (lambda r, n: (2, 2), lambda x, r, n: tutti.all_gather(x, axis=-1)),
    "all_gather stacked": (lambda r, n: (2,), lambda x, r, n: tutti.all_gather(x, axis=None)),
    "all_gather uneven": (lambda r, n: (r + 1, 2), lambda x, r, n: tutti.all_gather(x, uneven=True)),
    "gather": (lambda r, n: (3,), lambda x, r, n: tutti.gather(x, root=n - 1)),
    "gather stacked": (lambda r, n: (3,), lambda x, r, n: tutti.gather(x, axis=None)),
    "gather uneven": (lambda r, n: (r + 1,), lambda x, r, n: tutti.gather(x, uneven=True)),
    "reduce_scatter": (lambda r, n: (n, 2), lambda x, r, n: tutti.reduce_scatter(x)),
    "reduce_scatter mean": (lambda r, n: (2, n), lambda x, r, n: tutti.reduce_scatter(x, op="mean", axis=1)),
    "reduce_scatter dropped": (lambda r, n: (n, 2), lambda x, r, n: tutti.reduce_scatter(x, axis=None)),
    "reduce_scatter max": (lambda r, n: (n, 2), lambda x, r, n: tutti.reduce_scatter(x, op="max")),
    "reduce_scatter uneven": (
        lambda r, n: (n * (n + 1) // 2,),
        lambda x, r, n: tutti.reduce_scatter(x, sizes=range(1, n + 1)),
    ),
    "scatter": (lambda r, n: (2 * n,), lambda x, r, n: tutti.scatter(x, root=n - 1)),
    "scatter uneven": (lambda r, n: (n * (n + 1) // 2,), lambda x, r, n: tutti.scatter(x, sizes=range(1, n + 1))),
    "all_to_all": (lambda r, n: (n, 2), lambda x, r, n: tutti.all_to_all(x)),
    "all_to_all other axis": (lambda r, n: (n, 2), lambda x, r, n: tutti.all_to_all(x, split_axis=0, concat_axis=1)),
    "all_to_all uneven": (
        lambda r, n: (n * (n + 1) // 2,),
        lambda x, r, n: tutti.all_to_all(x, split_sizes=range(1, n + 1)),
    ),
    "sendrecv": (lambda r, n: (3,), lambda x, r, n: tutti.sendrecv(x, dst=(r + 1) % n, src=(r - 1) % n)),
    "sendrecv in a line": (
        lambda r, n: (3,),
        lambda x, r, n: tutti.sendrecv(x, dst=r + 1 if r + 1 < n else tutti.nobody, src=r - 1 if r else tutti.nobody),
    ),
    "permute": (lambda r, n: (3,), lambda x, r, n: tutti.permute(x, ring(n))),
    "permute partly": (lambda r, n: (3,), lambda x, r, n: tutti.permute(x, [(0, n - 1)])),
    "scan": (lambda r, n: (3,), lambda x, r, n: tutti.scan(x)),
    "exscan": (lambda r, n: (3,), lambda x, r, n: tutti.exscan(x)),
    "a tree": (lambda r, n: (3,), lambda x, r, n: torch.cat(list(tutti.all_reduce({"a": x, "b": x * x}).values()))),
    "two in a row": (lambda r, n: (n,), lambda x, r, n: tutti.all_gather(torch.sin(tutti.reduce_scatter(x * x)))),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_the_sum_of_all_losses(rank, size, case):
    shape, function = CASES[case]
    check_gradient(lambda x: function(x, rank, size), input_of(rank, shape(rank, size)), rank, size)


@pytest.mark.parametrize("case", CASES)
def test_gradients_have_gradients(rank, size, case):
    shape, function = CASES[case]
    check_second_gradient(lambda x: function(x, rank, size), input_of(rank, shape(rank, size)), rank, size)


@pytest.mark.ranks(2)
def test_a_rank_with_a_constant_gradient_takes_part_in_the_second_backward(rank, size):
    x = input_of(rank, (3,)).requires_grad_()
    y = tutti.all_reduce(x)
    loss = y.sum() if rank else (y * y).sum()  # only rank 0's first gradient depends on y
    (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), x)
    # The losses add up to Σy² + (n - 1)Σy: the gradient is 2y + n - 1 on each of n ranks, and theirs by any x is 2n.
    torch.testing.assert_close(second, torch.full((3,), 2.0 * size, dtype=torch.float64))


@pytest.mark.parametrize("op", ["min", "max"])
def test_ranks_that_tie_share_the_gradient(rank, size, op):
    x = torch.tensor([1.0, float(rank)], requires_grad=True)
    tutti.all_reduce(x, op=op).sum().backward()
    holder = 0 if op == "min" else size - 1
    assert x.grad.tolist() == [1.0, float(size) * (rank == holder)]


def test_min_and_max_of_nan_have_a_gradient_where_the_nan_was(rank, size):
    x = torch.tensor([float("nan") if rank == 0 else 1.0], requires_grad=True)
    tutti.all_reduce(x, op="max").sum().backward()
    assert x.grad.item() == (size if rank == 0 else 0.0)


def test_gradients_in_low_precision_and_of_complex_numbers(rank, size):
    x = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
    tutti.all_reduce(x).sum().backward()
    assert x.grad.dtype is torch.bfloat16 and x.grad.tolist() == [size] * 3
    z = torch.full((2,), 1 + 2j, requires_grad=True)
    tutti.all_reduce(z).abs().square().sum().backward()
    torch.testing.assert_close(z.grad, torch.full((2,), 2 * size * size * (1 + 2j)))


def test_asynchronous_calls_have_gradients(rank, size):
    x = input_of(rank, (3,)).requires_grad_()
    work = tutti.all_reduce(x, async_op=True)
    with torch.no_grad():
        y = work.wait()
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [float(size)] * 3
    start = input_of(rank, (rank + 1,))
    check_gradient(lambda x: tutti.all_gather(x, uneven=True, async_op=True).wait(), start, rank, size)


def test_no_grad_and_detach_take_no_part(rank, size):
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert not tutti.all_reduce(x, op="product").requires_grad
    assert not tutti.all_reduce(x.detach(), op="product").requires_grad
    assert not tutti.all_reduce(torch.ones(2, dtype=torch.int64)).requires_grad


@pytest.mark.parametrize("op", ["product", "band", "bor", "bxor"])
def test_reductions_without_a_gradient_refuse_in_forward(rank, size, op):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(tutti.Unsupported, match=op):
        tutti.all_reduce(x, op=op)
    with pytest.raises(tutti.Unsupported, match=op):
        tutti.scan(x, op=op, async_op=True)
    assert tutti.all_reduce(torch.ones(1)).item() == size


def test_running_extremes_refuse_in_forward(rank, size):
    with pytest.raises(tutti.Unsupported, match="running max"):
        tutti.scan(torch.ones(2, requires_grad=True), op="max")


def test_out_is_refused_under_autograd(rank, size):
    x = torch.ones(2, requires_grad=True)
    for target in (torch.zeros(2), x):
        with pytest.raises(tutti.Unsupported, match="out="):
            tutti.all_reduce(x, out=target)
    with pytest.raises(tutti.Unsupported, match="out="):
        tutti.all_reduce(torch.ones(2), out=x)
    with torch.no_grad():
        tutti.all_reduce(x, out=x)
    assert x.tolist() == [size] * 2


def test_messages_refuse_tensors_that_need_gradients(rank, size):
    x = torch.ones(2, requires_grad=True)
    for call in (
        lambda: tutti.send(x, dst=rank),
        lambda: tutti.isend(x, dst=rank),
        lambda: tutti.recv(src=rank, like=x),
        lambda: tutti.irecv(out=x, src=rank),
    ):
        with pytest.raises(tutti.Unsupported, match="sendrecv or permute"):
            call()


@pytest.mark.ranks(2)
def test_disagreement_on_taking_part_is_a_mismatch_in_forward(world, rank):
    group = world.split(color=0)
    with pytest.raises(tutti.Mismatch, match="gradient|differentiat"):
        group.all_reduce(torch.ones(2, requires_grad=rank != 0), timeout=20)


@pytest.mark.ranks(2)
def test_sendrecv_notices_disagreement_in_forward(world, rank, size):
    group = world.split(color=0)
    x = torch.ones(2, requires_grad=rank != 0)
    with pytest.raises(tutti.Mismatch, match="differentiation"):
        group.sendrecv(x, dst=(rank + 1) % size, src=(rank - 1) % size, timeout=20)
        group.barrier(timeout=20)  # between two ranks that agree it was over


@pytest.mark.ranks(2)
def test_nothing_takes_no_part(world, rank):
    group = world.split(color=0)
    with pytest.raises(tutti.Mismatch):
        group.broadcast(torch.ones(2, requires_grad=True) if rank == 0 else None, timeout=20)
        group.all_reduce(torch.ones(1), timeout=20)  # a root whose call was over learns of it here


@pytest.mark.ranks(2)
def test_a_result_that_a_rank_does_not_use_is_tied(rank, size):
    x = input_of(rank, (3,)).requires_grad_()
    y = tutti.reduce(x * 2, root=0)
    loss = (y * y).sum() if rank == 0 else tutti.tie(torch.zeros(()), y)
    loss.backward()
    total = sum(input_of(r, (3,)) * 2 for r in range(size))
    torch.testing.assert_close(x.grad, 4 * total)
    assert tutti.tie(torch.ones(()), torch.ones(2)).item() == 1.0  # nothing to tie


@pytest.mark.ranks(2)
def test_a_result_that_a_rank_forgets_is_an_error_not_a_hang(world, rank):
    group = world.split(color=0)
    x = torch.ones(3, requires_grad=True)
    y = group.reduce(x * 2, root=0, timeout=3)
    with pytest.raises(tutti.Error):
        if rank == 0:
            y.sum().backward()
        group.all_reduce(torch.ones(1), timeout=3)


def test_autograd_tools_work_with_the_verbs(rank, size):
    x = input_of(rank, (3,))

    def loss(x):
        return loss_of(tutti.all_reduce(x), rank)

    leaf = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(loss(leaf), leaf)
    torch.testing.assert_close(torch.func.grad(loss)(x), expected)
    leaf = x.clone().requires_grad_()
    torch.utils.checkpoint.checkpoint(loss, leaf, use_reentrant=False).backward()
    torch.testing.assert_close(leaf.grad, expected)


def test_a_gradient_reaches_every_use_once(rank, size):
    x = torch.ones(2, requires_grad=True)
    y = tutti.all_reduce(x)
    (y.sum() + 3 * y.sum()).backward(retain_graph=True)
    assert x.grad.tolist() == [4.0 * size] * 2
    y.sum().backward()
    assert x.grad.tolist() == [5.0 * size] * 2
