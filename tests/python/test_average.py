# test_average.py: the mean over ranks and over samples, in every framework.
# SPDX-License-Identifier: Apache-2.0
import kinds
import numpy as np
import pytest

import tutti


def tree_of(rank):
    random = np.random.default_rng(rank)
    return {"w": random.normal(size=(3, 4)).astype("f4"), "b": [random.normal(size=5).astype("f4"), np.float32(rank)]}


def as_kind(kind, tree):
    return {"w": kinds.make(kind, tree["w"]), "b": [kinds.make(kind, part) for part in tree["b"]]}


def leaves(tree):
    return [kinds.numbers(part) for part in (tree["w"], *tree["b"])]


@pytest.mark.parametrize("kind", kinds.ALL)
def test_every_rank_counts_alike(kind, rank, size):
    result = tutti.average(as_kind(kind, tree_of(rank)))
    every = [leaves(tree_of(r)) for r in range(size)]
    for place, part in enumerate(leaves(result)):
        np.testing.assert_allclose(part, np.mean([tree[place] for tree in every], axis=0), rtol=1e-6, atol=1e-7)
    assert kinds.is_kind(kind, result["w"])


@pytest.mark.parametrize("kind", kinds.ALL)
def test_every_sample_counts_alike_and_a_rank_without_samples_does_not_count(kind, rank, size):
    weights = [r * 10 for r in range(size)] if size > 1 else [3]
    tree = tree_of(rank)
    if weights[rank] == 0:
        tree["w"][:] = np.nan  # the mean over no samples
    before = [part.copy() for part in leaves(tree)]
    result = tutti.average(as_kind(kind, tree), weight=weights[rank])
    every = [leaves(tree_of(r)) for r in range(size)]
    for place, part in enumerate(leaves(result)):
        expected = sum(np.float64(w) * tree[place] for w, tree in zip(weights, every)) / sum(weights)
        np.testing.assert_allclose(part, expected, rtol=1e-5, atol=1e-6)
    for was, now in zip(before, leaves(tree)):
        np.testing.assert_array_equal(was, now)


@pytest.mark.parametrize("kind", ("jax", "tensorflow"))
def test_weights_work_under_the_compilers(kind, rank, size):
    pytest.importorskip(kind)
    step = kinds.compiled(kind, lambda x, n: tutti.average(x, weight=n))
    x, n = kinds.make(kind, np.full(4, rank, "f4")), kinds.make(kind, np.float32(rank + 1))
    expected = sum(r * (r + 1) for r in range(size)) / sum(r + 1 for r in range(size))
    np.testing.assert_allclose(kinds.numbers(step(x, n)), np.full(4, expected), rtol=1e-6)


def test_small_floats_do_not_overflow(rank, size):
    x = np.full(3, 60000, np.float16)
    np.testing.assert_allclose(tutti.average(x, weight=1000 + rank), x, rtol=2e-3)  # weight · x would be infinite


def test_over_a_group(world, rank, size):
    half = world.split(rank % 2)
    result = tutti.average(np.float64(rank), group=half)
    assert result == np.mean([r for r in range(size) if r % 2 == rank % 2])


def test_what_has_no_mean_is_refused_and_the_world_goes_on(rank, size):
    with pytest.raises(tutti.InvalidArgument, match="integers"):
        tutti.average({"a": np.ones(2), "n": np.arange(3)})
    with pytest.raises(tutti.InvalidArgument, match="less than none"):
        tutti.average(np.ones(2), weight=-1)
    with pytest.raises(tutti.InvalidArgument, match="nothing to average"):
        tutti.average(np.ones(2), weight=0)
    with pytest.raises(tutti.InvalidArgument, match="one number"):
        tutti.average(np.ones(2), weight=np.ones(2))
    assert tutti.average([]) == []
    assert tutti.all_reduce(np.float64(1)) == size
