# test_shard_indices.py: every sample has its rank, and all frameworks agree on which.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import tutti


def together(indices):
    """All ranks' samples in the order of steps."""
    every = tutti.all_gather_object(indices.tolist())
    longest = max(map(len, every))
    return [own[step] for step in range(longest) for own in every if step < len(own)]


def test_the_order_never_changes():
    alone = tutti.Group([tutti.world().rank])
    assert tutti.shard_indices(10, group=alone).tolist() == [9, 4, 7, 6, 1, 8, 5, 2, 3, 0]
    assert tutti.shard_indices(10, seed=7, epoch=3, group=alone).tolist() == [3, 6, 1, 8, 9, 2, 7, 5, 4, 0]


@pytest.mark.parametrize("count", (0, 1, 5, 12, 101))
def test_ranks_together_see_each_sample_once_or_what_rest_says(count, size):
    alone = tutti.shard_indices(count, seed=3, epoch=1, group=tutti.Group([tutti.world().rank])).tolist()
    assert sorted(alone) == list(range(count))
    assert together(tutti.shard_indices(count, seed=3, epoch=1, rest="keep")) == alone
    assert together(tutti.shard_indices(count, seed=3, epoch=1, rest="drop")) == alone[: count // size * size]
    padded = together(tutti.shard_indices(count, seed=3, epoch=1))
    assert padded == [alone[i % count] for i in range(-(-count // size) * size)]


def test_epochs_and_seeds_shuffle_anew_and_shuffle_false_keeps_the_order(rank, size):
    first = tutti.shard_indices(1000)
    assert first.dtype == np.int64
    assert not np.array_equal(first, tutti.shard_indices(1000, epoch=1))
    assert not np.array_equal(first, tutti.shard_indices(1000, seed=1))
    assert tutti.shard_indices(1000, shuffle=False, rest="keep").tolist() == list(range(rank, 1000, size))


def test_bad_arguments_are_refused():
    with pytest.raises(tutti.InvalidArgument, match="pad"):
        tutti.shard_indices(10, rest="some")
    with pytest.raises(tutti.InvalidArgument, match="is none"):
        tutti.shard_indices(-1)
    with pytest.raises(tutti.InvalidArgument, match="lengths"):
        next(tutti.batches((np.ones(3), np.ones(4)), 2))
    with pytest.raises(tutti.InvalidArgument, match="is none"):
        next(tutti.batches(np.ones(3), 0))


@pytest.mark.parametrize("batch", (1, 4, 7, 64))
def test_batches_are_the_same_on_any_number_of_ranks(batch):
    x = np.arange(30)
    alone = tutti.Group([tutti.world().rank])
    whole = [part.tolist() for part in tutti.batches(x, batch, epoch=2, group=alone)]
    own = [part["x"] for part in tutti.batches({"x": x, "y": x * 2}, batch, epoch=2)]
    assert sorted(sum(whole, [])) == x.tolist() and len(own) == len(whole)
    for expected, part in zip(whole, own):
        assert sum(tutti.all_gather_object(part.tolist()), []) == expected
    dropped = list(tutti.batches(x, batch, drop_last=True))
    assert len(dropped) == 30 // batch


def test_batches_of_each_framework_and_the_torch_sampler_agree(rank, size):
    import kinds

    pytest.importorskip("torch")
    x = np.arange(23, dtype="f4")
    expected = [part.tolist() for part in tutti.batches(x, 8)]
    for kind in kinds.PRESENT:
        found = list(tutti.batches(kinds.make(kind, x), 8))
        assert [kinds.numbers(part).tolist() for part in found] == expected
        assert kinds.is_kind(kind, found[0])
    from tutti.torch.sampler import ShardSampler

    sampler = ShardSampler(range(23), seed=5)
    sampler.set_epoch(2)
    assert list(sampler) == tutti.shard_indices(23, seed=5, epoch=2).tolist() and len(sampler) == len(list(sampler))
