# test_own_op.py: reductions by a function of the program's own.
# SPDX-License-Identifier: Apache-2.0
import functools

import numpy as np
import pytest

import tutti

world = tutti.init()


def affine(a, b):
    """x ↦ a[0]·x + a[1], then b: associative, and the order counts."""
    return np.stack([a[0] * b[0], b[0] * a[1] + b[1]])


def of_rank(rank):
    return np.stack([np.full(4, 1.0 if rank % 2 == 0 else -1.0), np.arange(4.0) + 10 * rank])


def of_ranks(ranks):
    return functools.reduce(affine, [of_rank(rank) for rank in ranks])


def test_the_order_of_ranks_is_kept():
    mine = of_rank(world.rank)
    np.testing.assert_array_equal(tutti.all_reduce(mine, affine), of_ranks(range(world.size)))
    np.testing.assert_array_equal(world.scan(mine, affine), of_ranks(range(world.rank + 1)))
    before = world.exscan(mine, affine)
    np.testing.assert_array_equal(before, of_ranks(range(world.rank)) if world.rank else np.zeros((2, 4)))
    last = world.size - 1
    result = world.reduce(mine, last, affine)
    np.testing.assert_array_equal(result, of_ranks(range(world.size)) if world.rank == last else of_rank(world.rank))
    np.testing.assert_array_equal(mine, of_rank(world.rank))


def test_the_result_goes_where_it_is_wanted_and_keeps_its_dtype():
    out = np.zeros(3, np.float32)
    assert tutti.all_reduce(np.full(3, world.rank + 1, np.float32), lambda a, b: a * b, out=out) is out
    assert out[0] == np.prod(np.arange(1, world.size + 1))


def test_torch_tensors_stay_tensors():
    torch = pytest.importorskip("torch")
    nearest = tutti.all_reduce(torch.tensor([world.rank + 0.5, -1.0 * world.rank]), lambda a, b: torch.where(a.abs() < b.abs(), a, b))
    assert isinstance(nearest, torch.Tensor)
    assert nearest.tolist() == [0.5, 0.0]


def calls_the_function():
    """Whether this rank combines two arrays in the first round, so that a wrong function fails here; the others are told."""
    return world.rank % 2 == 0 and world.rank + 1 < world.size


def test_a_function_that_fails_on_one_rank_is_told_to_all():
    def divide(a, b):
        raise ZeroDivisionError("no")

    if world.size == 1:
        return
    fails = calls_the_function()
    with pytest.raises(ZeroDivisionError if fails else tutti.Aborted, match="no" if fails else "failed on rank [02], which raises"):
        tutti.all_reduce(np.ones(2), divide)
    assert tutti.all_reduce(1) == world.size
    if world.rank == 0:  # its result needs no other rank
        assert tutti.scan(np.ones(2), divide).tolist() == [1, 1]
    else:
        with pytest.raises(ZeroDivisionError):
            tutti.scan(np.ones(2), divide)
    assert tutti.all_reduce(1) == world.size


def test_trees_are_combined_array_by_array():
    tree = {"w": np.full(3, world.rank + 1.0), "b": [np.array([world.rank], np.int32)]}
    largest = tutti.all_reduce(tree, lambda a, b: np.where(a > b, a, b))
    assert largest["w"].tolist() == [world.size] * 3 and largest["b"][0].tolist() == [world.size - 1]
    assert largest["b"][0].dtype == np.int32
    root = world.size - 1
    product = tutti.reduce(tree, root, lambda a, b: a * b)
    assert product["w"][0] == (np.prod(np.arange(1, world.size + 1)) if world.rank == root else world.rank + 1)
    before = tutti.scan(tree, lambda a, b: a + b, out=tree)
    assert before is tree and tree["w"][0] == sum(range(1, world.rank + 2))


def test_asynchronous_calls_are_folded_when_they_are_waited_for():
    mine = of_rank(world.rank)
    works = [tutti.all_reduce({"a": mine}, affine, async_op=True) for _ in range(3)]
    works.append(tutti.scan(mine, affine, async_op=True))
    assert tutti.all_reduce(1) == world.size
    np.testing.assert_array_equal(works[3].wait(), of_ranks(range(world.rank + 1)))
    for work in works[:3]:
        np.testing.assert_array_equal(work.wait()["a"], of_ranks(range(world.size)))
    work = tutti.reduce(mine, 0, affine, async_op=True)
    np.testing.assert_array_equal(work.wait(), of_ranks(range(world.size)) if world.rank == 0 else mine)


def test_no_rank_holds_the_arrays_of_all():
    mine = np.full(1 << 18, world.rank, np.float32)
    given = []

    def larger(a, b):
        given.append(a.nbytes + b.nbytes)
        return np.maximum(a, b)

    assert tutti.all_reduce(mine, larger)[0] == world.size - 1
    assert len(given) <= int(np.ceil(np.log2(max(world.size, 1)))) and all(bytes == 2 * mine.nbytes for bytes in given)


def test_the_result_is_never_the_input():
    for verb in (tutti.all_reduce, tutti.scan, functools.partial(tutti.reduce, root=world.rank)):
        if isinstance(verb, functools.partial) and world.size > 1:
            continue
        mine = np.ones(3)
        assert not np.shares_memory(verb(mine, op=lambda a, b: a), mine)


@pytest.mark.parametrize("into", ["the first", "the second"])
def test_a_function_may_work_in_place_and_the_input_stays_as_it_was(into):
    rank, size = world.rank, world.size
    add = {"the first": lambda a, b: np.add(a, b, out=a), "the second": lambda a, b: np.add(a, b, out=b)}[into]
    everyone = size * (size + 1) / 2
    expected = {"all_reduce": everyone, "reduce": everyone if rank == 0 else rank + 1, "scan": (rank + 1) * (rank + 2) / 2,
                "exscan": rank * (rank + 1) / 2}
    for verb, value in expected.items():
        mine = np.full(3, rank + 1.0)
        result = getattr(tutti, verb)(mine, op=add)
        assert mine.tolist() == [rank + 1] * 3, verb
        assert result.tolist() == [value] * 3, verb
    torch = pytest.importorskip("torch")
    tensor = torch.full((3,), rank + 1.0)
    assert tutti.all_reduce(tensor, op=lambda a, b: a.add_(b)).tolist() == [everyone] * 3
    assert tensor.tolist() == [rank + 1] * 3


@pytest.mark.parametrize("async_op", [False, True])
def test_an_out_that_does_not_fit_is_refused_before_the_ranks_begin(async_op):
    """A function's result was cast, and spread over what had more room; what had less raised on one rank, after the call."""
    x = np.ones(3)
    wrong = [(np.zeros((2, 3)), "float64 of shape"), (np.zeros(3, np.float32), "float32"), (np.zeros(3, int), "int64"),
             (np.zeros(4), r"shape \(4,\)"), (np.broadcast_to(0.0, (3,)), "read-only"), ([np.zeros(3)], "built differently")]
    for out, text in wrong:
        with pytest.raises(tutti.InvalidArgument, match=text):
            tutti.all_reduce(x, lambda a, b: a * b, out=out, async_op=async_op)
    torch = pytest.importorskip("torch")
    with pytest.raises(tutti.Unsupported, match="without gradients"):
        tutti.all_reduce(torch.ones(3), lambda a, b: a * b, out=torch.ones(3, requires_grad=True), async_op=async_op)
    assert tutti.all_reduce(1) == world.size


@pytest.mark.ranks(2)
def test_an_out_that_does_not_fit_on_one_rank_is_told_to_the_others():
    wrong = world.rank == world.size - 1
    with pytest.raises(tutti.InvalidArgument if wrong else tutti.Aborted):
        tutti.all_reduce(np.ones(3), lambda a, b: a + b, out=np.zeros(4 if wrong else 3), timeout=20)
    assert tutti.all_reduce(1, timeout=20) == world.size


def test_gradients_flow_where_the_function_has_them():
    torch = pytest.importorskip("torch")
    x = torch.full((2,), world.rank + 1.0, requires_grad=True)
    tutti.all_reduce(x, lambda a, b: a * b).sum().backward()
    others = np.prod([other + 1.0 for other in range(world.size) if other != world.rank])
    np.testing.assert_allclose(x.grad.numpy(), world.size * others)


def test_what_cannot_work_is_refused_and_the_group_goes_on():
    for wrong, what in ((lambda a, b: np.ones(3), "same shape"), (lambda a, b: a > b, "returned bool for two arrays of float64")):
        if world.size > 1:
            fails = calls_the_function()
            with pytest.raises(tutti.InvalidArgument if fails else tutti.Aborted, match=what if fails else "failed on rank [02]"):
                tutti.all_reduce(np.ones(2), wrong)
    with pytest.raises(tutti.InvalidArgument, match='op="max"'):
        tutti.all_reduce(np.ones(2), max)
    with pytest.raises(tutti.InvalidArgument):
        tutti.all_reduce(np.ones(2), op=7)
    assert tutti.all_reduce(1) == world.size
