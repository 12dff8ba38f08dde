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
