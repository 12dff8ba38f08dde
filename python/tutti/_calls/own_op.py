# own_op.py: reductions by a function of the program's own.
# SPDX-License-Identifier: Apache-2.0
"""The function is Python: it cannot run inside a plan, which moves on threads that do not hold Python's lock. So this thread makes the
rounds of a binomial tree (or of a prefix), each of them a permute, which the ranks compare as every collective: about log2(p) arrays
go in and out of a rank, and two are in memory. Operands come in the order of ranks, and are the function's own: it may work in place.

Where arrays have gradients, or the call is asynchronous, the ranks gather all arrays in one call, and each folds them: a gather has
gradients on every rank, and takes one number."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._arrays.fuse import common_adapter, outs_of
from .._arrays.operations import array_ops_of
from .._arrays.tree import Flat, flatten
from .._errors import Aborted, InvalidArgument, Unsupported
from .._native import Call, apply
from .._training.halo import is_plain
from . import hints
from .dispatch import reject
from .works import Works

Function = Callable[[Any, Any], Any]


def is_own(op: Any) -> bool:
    """Whether `op` is a function to reduce with, and not another library's name for a reduction of ours."""
    return callable(op) and not isinstance(op, type) and not hints.op_hint(op).startswith("; write")


def reduce_by(function: Function, verb: str, x: Any, root: int, out: Any, group: Any, async_op: bool, timeout: Any) -> Any:
    """all_reduce, reduce, scan or exscan of an array or a tree, in a group that this process is a member of."""
    try:
        own = _OwnReduction(function, verb, x, root, out, group, timeout)
    except (InvalidArgument, Unsupported, TypeError, ValueError) as error:
        reject(verb, group, error)
    if not async_op and own.goes_in_rounds:
        return own.in_rounds()
    return own.gathered(async_op)


def _flag(like: Any, number: int) -> Any:
    """A number as an array of the same framework."""
    if hasattr(like, "new_full"):
        import torch

        return like.new_full((1,), number, dtype=torch.int64)
    import numpy as np

    return np.full(1, number, np.int64)


class _OwnReduction:
    def __init__(self, function: Function, verb: str, x: Any, root: int, out: Any, group: Any, timeout: Any):
        self.function, self.verb, self.x, self.root, self.out = function, verb, x, root, out
        self.group, self.timeout = group, timeout
        self.flat: Flat = flatten(x, verb)
        self.outs: list = self._outs()
        self.error: Exception | None = None  # of the function, on this rank

    @property
    def goes_in_rounds(self) -> bool:
        """Whether nobody asks for gradients, and the arrays are NumPy's or torch's."""
        return bool(self.flat.leaves) and all(hasattr(leaf, "dtype") and is_plain(leaf) for leaf in self.flat.leaves)

    def _outs(self) -> list:
        """The arrays for the results, which fit: nothing may be wrong with them once the ranks have begun."""
        if self.out is None or not self.flat.leaves:
            return []
        outs = outs_of(self.x, self.out, self.flat, common_adapter(self.flat, self.verb), self.verb)
        if not self.goes_in_rounds or not all(map(is_plain, outs)):
            raise Unsupported(f"{self.verb}: out= is for NumPy arrays and for tensors without gradients; take the result")
        return outs

    # In rounds. Between them, values are lists of leaves; the last one says on which rank the function has failed: so all ranks make the
    # same calls, whatever happens in it, and those whose result needs that rank raise at the end.

    def in_rounds(self) -> Any:
        rank, size = self.group.rank, self.group.size
        self.group.run(Call("barrier"), None, timeout=self.timeout)  # a round does not ask all: one of them might refuse its part
        mine = [*(array_ops_of(leaf, self.verb).copy(leaf) for leaf in self.flat.leaves), _flag(self.flat.leaves[0], 0)]
        if self.verb in ("scan", "exscan"):
            found = self._prefix(mine, rank, size)
        else:
            found = self._to_first(mine, rank, size)
            if self.verb == "all_reduce":
                found = self._call(Call("broadcast", root=0), found)
            elif self.root != 0:
                found = self._call(Call("permute", pairs=[(0, self.root)]), found)
        if self.error is not None:
            raise self.error
        if self.verb == "reduce" and rank != self.root:
            return self.x
        if failed := int(found[-1][0]):
            raise Aborted(f"{self.verb}: the function given as op= failed on rank {failed - 1}, which raises its error")
        return self._delivered(found[:-1])

    def _to_first(self, mine: list, rank: int, size: int) -> list:
        """A binomial tree: in the round of a distance, every second of the ranks that are left gives what it has to the one before it."""
        distance = 1
        while distance < size:
            pairs = [(other + distance, other) for other in range(0, size - distance, 2 * distance)]
            came = self._call(Call("permute", pairs=pairs), mine)
            if any(rank == to for _, to in pairs):
                mine = self._combine(mine, came)
            distance *= 2
        return mine

    def _prefix(self, mine: list, rank: int, size: int) -> list:
        distance = 1
        while distance < size:
            came = self._call(Call("permute", pairs=[(other, other + distance) for other in range(size - distance)]), mine)
            if rank >= distance:
                mine = self._combine(came, mine)
            distance *= 2
        if self.verb == "scan":
            return mine
        return self._call(Call("permute", pairs=[(other, other + 1) for other in range(size - 1)]), mine)  # zeros on the first rank

    def _call(self, call: Call, leaves: list) -> list:
        """A permute or broadcast of all leaves."""
        return apply(call, leaves, None, self.group, False, self.timeout)

    def _combine(self, first: list, second: list) -> list:
        """The function on all leaves. Where it fails, what was there goes on, with the number of this rank."""
        failed = int(first[-1][0]) or int(second[-1][0])
        if failed:
            return [*first[:-1], _flag(first[0], failed)]
        try:
            return [*(self._checked(self.function(a, b), a) for a, b in zip(first[:-1], second[:-1], strict=True)), first[-1]]
        except Exception as error:
            self.error = error
            return [*first[:-1], _flag(first[0], self.group.rank + 1)]
        except BaseException as error:  # Ctrl-C: the others would wait for this rank's next calls
            self.group.abort(f"{self.verb}: {error!r} left the function given as op=")
            raise

    def _checked(self, result: Any, operand: Any) -> Any:
        self._check_shape(result, operand)
        if getattr(result, "dtype", None) != operand.dtype:
            raise InvalidArgument(f"{self.verb}: the function given as op= returned {getattr(result, 'dtype', None)} for two arrays of"
                                  f" {operand.dtype}; convert its result")
        return result

    def _check_shape(self, result: Any, operand: Any) -> None:
        if getattr(result, "shape", None) != getattr(operand, "shape", None):
            raise InvalidArgument(f"{self.verb}: the function given as op= returned shape {getattr(result, 'shape', None)} for two arrays of "
                                  f"shape {getattr(operand, 'shape', None)}; it combines two arrays to one of the same shape")

    # Gathered.

    def gathered(self, async_op: bool) -> Any:
        """A gather of all arrays, which each rank that wants the result folds."""
        rank = self.group.rank
        ranks = {"scan": rank + 1, "exscan": rank}.get(self.verb, self.group.size)
        call = Call("gather", root=self.root, axis=None) if self.verb == "reduce" else Call("all_gather", axis=None)
        fold = functools.partial(self._folded, 0 if self.verb == "reduce" and rank != self.root else ranks)
        if not async_op:
            return fold([apply(call, self.x, None, self.group, False, self.timeout)])
        return Works([apply(call, self.x, None, self.group, True, self.timeout)], fold, self.verb)

    def _folded(self, ranks: int, results: list) -> Any:
        if self.verb == "reduce" and self.group.rank != self.root:
            return self.x
        stacks = flatten(results[0], self.verb).leaves
        return self._delivered([self._fold(stack, ranks) for stack in stacks])

    def _fold(self, stacked: Any, ranks: int) -> Any:
        result = stacked[0] if ranks else stacked[0] * 0
        for rank in range(1, ranks):
            result = self.function(result, stacked[rank])
            self._check_shape(result, stacked[0])
        return result

    def _delivered(self, leaves: list) -> Any:
        if self.out is None:
            return self.flat.rebuild(leaves)
        for to, leaf in zip(self.outs, leaves, strict=True):
            to[...] = leaf
        return self.out
