# runs.py: arrays laid end to end, and the run of them that each rank owns: ZeRO's sharding, for any framework.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .. import _native


class RunLayout(NamedTuple):
    """Arrays of one dtype: their places in a list, how many elements each has, and how many of all each rank has."""

    places: tuple[int, ...]
    counts: tuple[int, ...]
    sizes: tuple[int, ...]

    def begin(self, rank: int) -> int:
        return sum(self.sizes[:rank])


def layouts(dtypes: Sequence[str], counts: Sequence[int], ranks: int) -> dict[str, RunLayout]:
    """By dtype, in an order that is the same on every rank."""
    by_dtype: dict[str, list[int]] = {}
    for place, dtype in enumerate(dtypes):
        by_dtype.setdefault(dtype, []).append(place)
    result = {}
    for dtype, places in sorted(by_dtype.items()):
        own = tuple(counts[place] for place in places)
        result[dtype] = RunLayout(tuple(places), own, tuple(_native.shard_sizes(sum(own), ranks)))
    return result
