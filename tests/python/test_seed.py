# test_seed.py: random numbers that are the same on every rank, or different on each.
# SPDX-License-Identifier: Apache-2.0
import random

import numpy as np
import pytest

import tutti


def draw(kind, number):
    if kind == "python":
        return np.array([random.random() for _ in range(4)])
    if kind == "numpy":
        return np.random.random(4)
    framework = pytest.importorskip(kind)
    if kind == "jax":
        return np.asarray(framework.random.uniform(framework.random.key(number), (4,)))
    if kind == "tensorflow":
        return framework.random.uniform((4,)).numpy()
    return framework.rand(4).numpy()


KINDS = ["python", "numpy", "torch", "jax", "tensorflow"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_numbers_on_every_rank(kind):
    every = tutti.all_gather(draw(kind, tutti.seed(1234)), axis=None)
    assert (every == every[0]).all()
    np.testing.assert_array_equal(draw(kind, tutti.seed(1234)), every[0])


@pytest.mark.parametrize("kind", KINDS)
def test_different_numbers_on_every_rank(kind, size):
    mine = draw(kind, tutti.seed(1234, per_rank=True))
    assert len(np.unique(tutti.all_gather(mine, axis=None))) == 4 * size
    np.testing.assert_array_equal(draw(kind, tutti.seed(1234, per_rank=True)), mine)


def test_ranks_of_one_group_differ_and_others_draw_alike(world, rank):
    pairs = world.split(rank // 2)
    numbers = tutti.all_gather(tutti.seed(7, per_rank=True, group=pairs), axis=None)
    assert (numbers[0::2] == numbers[0]).all() and len(set(numbers.tolist())) == min(2, len(numbers))


@pytest.mark.parametrize("wrong", [-1, 1 << 32])
def test_a_seed_out_of_range_is_refused(wrong):
    with pytest.raises(tutti.InvalidArgument, match=r"is not from 0 to 2\*\*32 - 1"):
        tutti.seed(wrong)
