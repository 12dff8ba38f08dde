# pmap.py: a function over arrays that are split over the ranks.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from .. import _native, adapters
from .._arrays.tree import flatten
from .._calls.dispatch import dispatch, group_or_world, tell_refusal
from .._errors import InvalidArgument

P = ParamSpec("P")
R = TypeVar("R")
Axes = int | None | Sequence[int | None] | Mapping[str, int | None]


def _is_array(value: Any) -> bool:
    kind = adapters.kind_of(value)
    is_number = isinstance(value, (bool, int, float, complex))
    return kind not in (None, adapters.TREE, adapters.NOTHING, adapters.TEXT) and not is_number


class _Split:
    """Cuts the arguments of one call, all into parts of the same lengths."""

    def __init__(self, rank: int, size: int):
        self.rank = rank
        self.size = size
        self.sizes: list[int] | None = None
        self.first = ""

    def cut(self, value: Any, axis: int | None, name: str) -> Any:
        if axis is None:
            return value
        flat = flatten(value, "pmap")
        parts = [self._cut_leaf(leaf, axis, name + path) for leaf, path in zip(flat.leaves, flat.paths, strict=True)]
        return flat.rebuild(parts)

    def _cut_leaf(self, leaf: Any, axis: int, name: str) -> Any:
        if not _is_array(leaf):
            return leaf  # numbers, texts and whatever else is no array: whole
        axes = len(leaf.shape)
        if not -axes <= axis < axes:
            raise InvalidArgument(
                f"pmap: {name} has {axes} axes, so it cannot be split along axis {axis}; say so by in_axes"
            )
        axis %= axes
        length = int(leaf.shape[axis])
        if self.sizes is None:
            self.sizes, self.first = _native.shard_sizes(length, self.size), name
        elif sum(self.sizes) != length:
            raise InvalidArgument(
                f"pmap: {name} has length {length} along axis {axis}, but {self.first} has {sum(self.sizes)}; "
                "arguments that are split must agree (in_axes=None hands one over whole)"
            )
        begin = sum(self.sizes[: self.rank])
        return leaf[(slice(None),) * axis + (slice(begin, begin + self.sizes[self.rank]),)]


def _bind_axes(names: list[str], in_axes: Axes, args: tuple, kwargs: dict) -> tuple[list, dict]:
    """The axis of each argument: for the positional ones by place, for the keyword ones by name."""
    if isinstance(in_axes, Mapping):
        return [in_axes.get(name) for name in names[: len(args)]], {name: in_axes.get(name) for name in kwargs}
    if in_axes is None or isinstance(in_axes, int):
        return [in_axes] * len(args), {}
    if len(in_axes) != len(args):
        raise InvalidArgument(
            f"pmap: in_axes names {len(in_axes)} arguments, but the function was called with {len(args)}"
        )
    return list(in_axes), {}


def _gather(result: Any, axis: int | None, split: _Split, group: Any) -> Any:
    """Every rank's result, joined."""
    flat = flatten(result, "pmap")
    uneven = split.sizes is not None and len(set(split.sizes)) > 1
    return flat.rebuild([_gather_leaf(leaf, axis, split, uneven, group) for leaf in flat.leaves])


def _gather_leaf(leaf: Any, axis: int | None, split: _Split, uneven: bool, group: Any) -> Any:
    axes = len(adapters.adapter_of(leaf, verb="pmap").shape_of(leaf))
    if axis is None or axes == 0:
        call = _native.Call("all_gather", axis=None)
    elif not uneven:
        call = _native.Call("all_gather", axis=axis)
    elif adapters.is_traced(leaf):
        call = _native.Call("all_gather", axis=axis, uneven=True, sizes=split.sizes)  # a compiler has to know them
    else:
        call = _native.Call("all_gather", axis=axis, uneven=True)
    return dispatch(call, leaf, None, group, False, None)


def share_work(
    fn: Callable, axes: list, named_axes: dict, out_axes: int | None, group: Any, args: tuple, kwargs: dict
) -> Any:
    """This rank's part of one call, and everybody's results. torch.compile has one of its own (compiling_layers.py)."""
    members = group_or_world(group)
    split = _Split(members.rank, members.size)
    try:
        parts = [split.cut(x, axis, f"argument {i}") for i, (x, axis) in enumerate(zip(args, axes, strict=True))]
        named = {name: split.cut(x, named_axes.get(name), name) for name, x in kwargs.items()}
        result = fn(*parts, **named)
    except Exception as error:  # the others need not wait for this rank's part
        tell_refusal(members, _native.Call("all_gather"), error)
        raise
    return _gather(result, out_axes, split, members)


def pmap(
    fn: Callable[P, R], in_axes: Axes = 0, out_axes: int | None = 0, group: _native.Group | None = None
) -> Callable[P, R]:
    """Makes a function that shares its work among the ranks.

    Every rank calls it with the same arguments. Each applies `fn` to its part of them and all get all the results::

        y = tutti.pmap(gelu)(x)        # x is split along axis 0; y is what gelu(x) would have been

    in_axes: along which axis arguments are split: one number for all positional arguments, a sequence with one each, or
    a
        dict by parameter name; None hands an argument over whole, as keyword arguments are unless the dict names them.
        Trees of arrays are split leaf by leaf; numbers and texts are handed over whole. A length that the ranks cannot
        share equally is fine: the first ranks get one more.
    out_axes: along which axis the results are joined; None stacks them on a new first axis, as is done with numbers.
    group: the ranks that share the work; the world unless given.

    Inside a compiler, where lengths must be known beforehand, results of an uneven split have the length of their
    input. Raises InvalidArgument where arguments disagree in length or lack the axis."""

    names = list(inspect.signature(fn).parameters) if isinstance(in_axes, Mapping) else []

    @functools.wraps(fn, updated=())
    def mapped(*args: P.args, **kwargs: P.kwargs) -> R:
        axes, named_axes = _bind_axes(names, in_axes, args, kwargs)
        return share_work(fn, axes, named_axes, out_axes, group, args, kwargs)

    return mapped
