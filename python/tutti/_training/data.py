# data.py: which samples are this rank's.
# SPDX-License-Identifier: Apache-2.0
"""The order depends on the number of samples, the seed and the epoch alone. It is drawn in C++ by a generator of
Tutti's own, so that all frameworks, machines and versions split a data set alike."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeVar

from numpy.typing import NDArray

from .. import _native
from .._arrays.tree import flatten
from .._errors import InvalidArgument


Data = TypeVar("Data")


def _place(group: _native.Group | None) -> tuple[int, int]:
    if group is None:
        if not _native.has_world():
            raise InvalidArgument("which samples are this rank's? call tutti.init() first, or give group=")
        group = _native.world()
    return group.rank, group.size


def shard_indices(
    count: int, *, epoch: int = 0, seed: int = 0, shuffle: bool = True, rest: Literal["pad", "drop", "keep"] = "pad",
    group: _native.Group | None = None,
) -> NDArray[Any]:
    """The indices of this rank's samples in one epoch, as a NumPy array of int64::

        for epoch in range(10):
            for i in tutti.shard_indices(len(data), epoch=epoch, seed=1):
                train(data[i])

    Rank r of n takes every n-th of the shuffled samples, so that after each step the ranks have together seen the
    samples that one process would have seen.

    epoch: shuffles anew. seed: the same on every rank. shuffle=False keeps the order.
    rest: what becomes of the samples left over when the number of ranks does not divide `count`: "pad" uses the first
        ones again and "drop" leaves the last ones out, so that all ranks get the same number; "keep" gives some ranks
        one more.
    group: the ranks that share the data; the world unless given (the data axis of a mesh).
    """
    if count < 0:
        raise InvalidArgument(f"shard_indices: a data set of {count} samples is none")
    return _native.shard_indices(count, _place(group), (seed, epoch), shuffle, rest).numpy()


def batches(
    data: Data,
    size: int,
    *,
    epoch: int = 0,
    seed: int = 0,
    shuffle: bool = True,
    drop_last: bool = False,
    group: _native.Group | None = None,
) -> Iterator[Data]:
    """This rank's part of each batch of a data set held in arrays::

        for x, y in tutti.batches((images, labels), 64, epoch=epoch):
            grads = tutti.average(gradient(params, x, y), weight=len(y))

    `size` is the size of the batch over all ranks: training on any number of ranks sees the same batches in the same
    order. Each batch is cut into parts that differ by one sample at most; `weight` above makes up for that. Where a
    batch has fewer samples than there are ranks, some parts are empty, so that every rank takes the same number of
    steps.

    data: an array, or a tree of arrays of the same length, indexed along the first axis.
    drop_last: leaves out the last batch if it is smaller than the others.
    The other arguments are those of `shard_indices`.
    """
    flat = flatten(data, "batches")
    lengths = {int(leaf.shape[0]) for leaf in flat.leaves if len(leaf.shape) > 0}
    if len(lengths) != 1 or any(len(leaf.shape) == 0 for leaf in flat.leaves):
        raise InvalidArgument(f"batches: the arrays have the lengths {sorted(lengths)}; they must have one")
    if size < 1:
        raise InvalidArgument(f"batches: a batch of {size} samples is none")
    count = lengths.pop()
    rank, ranks = _place(group)
    order = _native.shard_indices(count, (0, 1), (seed, epoch), shuffle, "keep").numpy()
    for begin in range(0, count, size):
        end = min(begin + size, count)
        if drop_last and end - begin < size:
            return
        sizes = _native.shard_sizes(end - begin, ranks)
        first = begin + sum(sizes[:rank])
        own = order[first : first + sizes[rank]]
        yield flat.rebuild([_take(leaf, own) for leaf in flat.leaves])


def _take(leaf: Any, indices: Any) -> Any:
    """Rows of an array by number, with the framework's own means."""
    if type(leaf).__module__.startswith("tensorflow"):
        import tensorflow as tf

        return tf.gather(leaf, indices)
    return leaf[indices]
