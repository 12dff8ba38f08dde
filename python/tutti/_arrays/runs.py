# runs.py: arrays laid end to end, and the run of them that each rank owns: ZeRO's sharding, for any framework.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _native, adapters
from .operations import array_ops


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


class SharedRuns:
    """Arrays that are whole on every rank as one run per dtype: this rank's part of them laid end to end. For frameworks
    whose arrays do not change. Runs are dicts by dtype."""

    def __init__(self, kind: str, dtypes: Sequence[str], counts: Sequence[int], group: Any):
        self.group = group
        self.layouts = layouts(dtypes, counts, group.size)
        self._adapter = adapters.get(kind)
        self._ops = array_ops(kind)

    def _flat(self, leaves: Sequence[Any], layout: RunLayout) -> Any:
        return self._adapter.pack([leaves[place] for place in layout.places])

    def _run(self, verb: str, x: Any, **options: Any) -> Any:
        return _native.apply(_native.Call(verb, **options), x, None, self.group, False, None)

    def own(self, leaves: Sequence[Any]) -> dict[str, Any]:
        """This rank's run of values that are whole on every rank."""
        rank, slice_of = self.group.rank, self._ops.slice
        return {
            dtype: slice_of(self._flat(leaves, layout), 0, layout.begin(rank), layout.sizes[rank])
            for dtype, layout in self.layouts.items()
        }

    def mean(self, leaves: Sequence[Any], weight: Any, clip_norm: float | None) -> dict[str, Any]:
        """This rank's run of the mean over the ranks, scaled so that the norm of all runs is at most clip_norm.

        weight: how much this rank's values count; 0, even where they are NaN."""
        own = total = None
        if weight is not None:
            own = self._ops.scalar(weight)
            total = self._run("all_reduce", own)
        runs = {}
        for dtype, layout in self.layouts.items():
            flat = self._flat(leaves, layout)
            flat = flat if own is None else self._ops.weighted(flat, own, total)
            runs[dtype] = self._run("reduce_scatter", flat, op="mean" if own is None else "sum", sizes=layout.sizes)
        return runs if clip_norm is None else self._clipped(runs, clip_norm)

    def _clipped(self, runs: dict[str, Any], most: float) -> dict[str, Any]:
        ops, zero = self._ops, self._ops.scalar(0.0)
        square = sum((ops.sum(ops.cast(run, zero) ** 2) for run in runs.values()), zero)
        ratio = most / (self._run("all_reduce", square) ** 0.5 + 1e-6)
        scale = ops.where(ratio < 1, ratio, 1.0)
        return {dtype: run * ops.cast(scale, run) for dtype, run in runs.items()}

    def whole(self, runs: dict[str, Any], like: Sequence[Any]) -> list[Any]:
        """Everybody's runs to everybody: arrays of these shapes."""
        leaves: list[Any] = [None] * len(like)
        for dtype, layout in self.layouts.items():
            flat = self._run("all_gather", runs[dtype], uneven=True, sizes=layout.sizes)
            parts = self._adapter.unpack(flat, [like[place] for place in layout.places])
            for place, part in zip(layout.places, parts, strict=True):
                leaves[place] = part
        return leaves
