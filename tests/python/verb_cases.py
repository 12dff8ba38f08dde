# verb_cases.py: one call of every verb that has a gradient, the same for any framework, and inputs any rank can make.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import typing
import zlib

import numpy as np

import tutti


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    shape: typing.Callable  # (rank, size) → shape of that rank's input
    run: typing.Callable  # (x, rank, size) → result
    ties: bool = False  # inputs in which several ranks hold the same value

    def input(self, rank, size):
        seed = zlib.crc32(f"{self.name} {rank}".encode())
        if self.ties:
            return np.random.default_rng(seed).integers(0, 2, self.shape(rank, size)).astype("float64")
        return np.random.default_rng(seed).standard_normal(self.shape(rank, size))

    def __str__(self):
        return self.name


def _same(*shape):
    return lambda rank, size: shape


def _blocks(*shape):
    """The first axis divides by the number of ranks."""
    return lambda rank, size: (shape[0] * size, *shape[1:])


def _sizes(size):
    return [rank + 1 for rank in range(size)]


def _ring(size):
    return [(rank, (rank + 1) % size) for rank in range(size)]


def _last(size):
    return size - 1


CASES = [
    Case("all_reduce sum", _same(2, 3), lambda x, r, n: tutti.all_reduce(x)),
    Case("all_reduce mean", _same(3), lambda x, r, n: tutti.all_reduce(x, op="mean")),
    Case("all_reduce premul", _same(3), lambda x, r, n: tutti.all_reduce(x, op=tutti.premul(0.25))),
    Case("all_reduce max", _same(4), lambda x, r, n: tutti.all_reduce(x, op="max")),
    Case("all_reduce of a number", _same(), lambda x, r, n: tutti.all_reduce(x)),
    Case("reduce sum", _same(2, 2), lambda x, r, n: tutti.reduce(x, root=_last(n))),
    Case("reduce mean", _same(3), lambda x, r, n: tutti.reduce(x, root=0, op="mean")),
    Case("reduce min", _same(3), lambda x, r, n: tutti.reduce(x, root=_last(n), op="min")),
    Case("broadcast", _same(2, 2), lambda x, r, n: tutti.broadcast(x, root=_last(n))),
    Case("all_gather", _same(1, 2), lambda x, r, n: tutti.all_gather(x)),
    Case("all_gather along axis 1", _same(2, 1), lambda x, r, n: tutti.all_gather(x, axis=1)),
    Case("all_gather stacked", _same(2), lambda x, r, n: tutti.all_gather(x, axis=None)),
    Case(
        "all_gather uneven", lambda r, n: (r + 1, 2), lambda x, r, n: tutti.all_gather(x, uneven=True, sizes=_sizes(n))
    ),
    Case("gather", _same(2, 2), lambda x, r, n: tutti.gather(x, root=_last(n))),
    Case("gather stacked", _same(2), lambda x, r, n: tutti.gather(x, root=0, axis=None)),
    Case(
        "gather uneven", lambda r, n: (r + 1, 2), lambda x, r, n: tutti.gather(x, root=0, uneven=True, sizes=_sizes(n))
    ),
    Case("reduce_scatter sum", _blocks(1, 2), lambda x, r, n: tutti.reduce_scatter(x)),
    Case("reduce_scatter mean", _blocks(2), lambda x, r, n: tutti.reduce_scatter(x, op="mean")),
    Case("reduce_scatter max", _blocks(2), lambda x, r, n: tutti.reduce_scatter(x, op="max")),
    Case("reduce_scatter, axis dropped", lambda r, n: (n, 2), lambda x, r, n: tutti.reduce_scatter(x, axis=None)),
    Case(
        "reduce_scatter uneven",
        lambda r, n: (sum(_sizes(n)),),
        lambda x, r, n: tutti.reduce_scatter(x, sizes=_sizes(n)),
    ),
    Case("scatter", _blocks(2, 2), lambda x, r, n: tutti.scatter(x, root=_last(n))),
    Case("scatter uneven", lambda r, n: (sum(_sizes(n)),), lambda x, r, n: tutti.scatter(x, root=0, sizes=_sizes(n))),
    Case("all_to_all", _blocks(1, 2), lambda x, r, n: tutti.all_to_all(x)),
    Case(
        "all_to_all across axes", lambda r, n: (n, 2), lambda x, r, n: tutti.all_to_all(x, split_axis=0, concat_axis=1)
    ),
    Case(
        "all_to_all uneven",
        lambda r, n: (n * (r + 1),),
        lambda x, r, n: tutti.all_to_all(x, split_sizes=[r + 1] * n, recv_sizes=_sizes(n)),
    ),
    Case("permute", _same(3), lambda x, r, n: tutti.permute(x, _ring(n))),
    Case("permute to some", _same(3), lambda x, r, n: tutti.permute(x, _ring(n)[:1])),
    Case("sendrecv", _same(3), lambda x, r, n: tutti.sendrecv(x, dst=(r + 1) % n, src=(r - 1) % n)),
    Case("scan", _same(3), lambda x, r, n: tutti.scan(x)),
    Case("exscan", _same(3), lambda x, r, n: tutti.exscan(x)),
]
SELECTING = [
    Case("all_reduce min, ties", _same(6), lambda x, r, n: tutti.all_reduce(x, op="min"), ties=True),
    Case("reduce max, ties", _same(6), lambda x, r, n: tutti.reduce(x, op="max"), ties=True),
    Case("reduce_scatter min, ties", _blocks(3), lambda x, r, n: tutti.reduce_scatter(x, op="min"), ties=True),
]


def weights(rank, shape):
    """How a rank weighs the elements of its result in its loss: no two alike."""
    count = int(np.prod(shape, dtype=np.int64))
    return np.cos(1.0 + rank + 0.7 * np.arange(count)).reshape(shape)
