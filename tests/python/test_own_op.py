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


def test_what_cannot_work_is_refused_and_the_group_goes_on():
    with pytest.raises(tutti.InvalidArgument, match="async_op"):
        tutti.all_reduce(np.ones(2), lambda a, b: a, async_op=True)
    if world.size > 1:
        with pytest.raises(tutti.InvalidArgument, match="same shape"):
            tutti.all_reduce(np.ones(2), lambda a, b: np.ones(3))
    with pytest.raises(tutti.InvalidArgument, match='op="max"'):
        tutti.all_reduce(np.ones(2), max)
    with pytest.raises(tutti.InvalidArgument):
        tutti.all_reduce(np.ones(2), op=7)
    assert tutti.all_reduce(1) == world.size
