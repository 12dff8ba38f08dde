# _fuse.py: one verb on a nest of arrays, in few messages.
# SPDX-License-Identifier: Apache-2.0
"""Verbs that treat each element by itself (all_reduce, broadcast, …) run on the nest's arrays laid end to end, one message
per dtype; large arrays, which a copy would cost more than a message saves, go by themselves. The other verbs run once per
array, all started before the first is waited for where the framework allows it."""

from __future__ import annotations

import dataclasses
import functools
import math
from types import ModuleType
from typing import Any

from . import adapters
from ._errors import InvalidArgument
from ._native import Call
from ._nest import Flat, flatten, hash_of
from ._works import Works

FUSED_VERBS = frozenset({"all_reduce", "reduce", "broadcast", "scan", "exscan", "permute", "sendrecv"})
# Elements of one array above which it goes by itself: at 64 Ki elements a message's start is lost in its copy.
FUSED_COUNT_MAX = 1 << 16


@dataclasses.dataclass(frozen=True, slots=True)
class _Message:
    """Leaves that travel together, by their places in the flattened nest."""

    places: tuple[int, ...]


@functools.lru_cache(maxsize=1024)
def _with_structure(call: Call, structure: int) -> Call:
    return call.replace(structure=structure)


def _common_adapter(flat: Flat, verb: str) -> ModuleType:
    first = adapters.adapter_of(flat.leaves[0], flat.paths[0], verb)
    for leaf, path in zip(flat.leaves, flat.paths, strict=True):
        adapter = adapters.adapter_of(leaf, path, verb)
        if adapter is not first:
            one, other = (module.__name__.rpartition(".")[2] for module in (first, adapter))
            raise InvalidArgument(
                f"{verb}: the nest holds a {one} array at {flat.paths[0]} and a {other} array at {path}; "
                "convert them to one framework, or make one call each"
            )
    return first


def _describe_fused(verb: str):
    def describe(leaf: Any, path: str) -> str:
        adapter = adapters.adapter_of(leaf, path, verb)
        return f"{adapter.dtype_name(leaf)}{tuple(adapter.shape_of(leaf))}"

    return describe


def _plan(flat: Flat, adapter: ModuleType, fused: bool) -> list[_Message]:
    """Which leaves travel together. The same on every rank, as it follows from the structure alone."""
    if not fused:
        return [_Message((place,)) for place in range(len(flat.leaves))]
    messages: list[list[int]] = []
    open_ones: dict[str, list[int]] = {}
    for place, leaf in enumerate(flat.leaves):
        if math.prod(adapter.shape_of(leaf)) > FUSED_COUNT_MAX:
            messages.append([place])
            continue
        together = open_ones.get(adapter.dtype_name(leaf))
        if together is None:
            together = open_ones[adapter.dtype_name(leaf)] = []
            messages.append(together)
        together.append(place)
    return [_Message(tuple(places)) for places in messages]


def _check_out(leaf: Any, out: Any, adapter: ModuleType, where: str) -> None:
    """What the native door would say of one array, said before several are packed."""
    if adapters.adapter_of(out, where) is not adapter:
        raise InvalidArgument(f"{where} is of another framework than the input")
    if tuple(adapter.shape_of(out)) != tuple(adapter.shape_of(leaf)) or adapter.dtype_name(out) != adapter.dtype_name(
        leaf
    ):
        raise InvalidArgument(
            f"{where} is {adapter.dtype_name(out)} of shape {tuple(adapter.shape_of(out))}, but the result is "
            f"{adapter.dtype_name(leaf)} of shape {tuple(adapter.shape_of(leaf))}"
        )
    if hasattr(adapter, "is_writable") and not adapter.is_writable(out):
        raise InvalidArgument(f"{where} is read-only; pass a writable one")


def _outs_of(x: Any, out: Any, flat: Flat, adapter: ModuleType, verb: str) -> list:
    """The arrays for the results, in the order of the input's."""
    outs = flatten(out, verb)
    if outs.text != flatten(x, verb).text:
        raise InvalidArgument(
            f"{verb}: out is built differently from the input; give a nest with the same keys and lengths"
        )
    if verb in FUSED_VERBS:
        for leaf, each, path in zip(flat.leaves, outs.leaves, outs.paths, strict=True):
            _check_out(leaf, each, adapter, f"{verb}: the array for the result at {path}")
    return outs.leaves


class _NestCall:
    """One verb on one nest."""

    def __init__(self, call: Call, x: Any, out: Any, group: Any, timeout: float | None):
        fused = call.verb in FUSED_VERBS
        self.flat = flatten(x, call.verb, _describe_fused(call.verb)) if fused else flatten(x, call.verb)
        self.call = _with_structure(call, hash_of(self.flat.text))
        self.group = group
        self.timeout = timeout
        self.messages: list[_Message] = []
        if not self.flat.leaves:
            return
        self.adapter = _common_adapter(self.flat, call.verb)
        self.outs = None if out is None else _outs_of(x, out, self.flat, self.adapter, call.verb)
        fusible = fused and (out is None or hasattr(self.adapter, "unpack_into"))
        self.messages = _plan(self.flat, self.adapter, fusible)

    def start(self, message: _Message, async_op: bool) -> Any:
        """Runs or starts one message; what comes back is a result or a Work."""
        leaves = [self.flat.leaves[place] for place in message.places]
        if len(leaves) == 1:
            out = None if self.outs is None else self.outs[message.places[0]]
            return self.adapter.apply(self.call, leaves[0], out, self.group, async_op, self.timeout)
        packed = self.adapter.pack(leaves)
        return self.adapter.apply(self.call, packed, None, self.group, async_op, self.timeout)

    def finish(self, results: list) -> Any:
        """The nest of results from those of the messages."""
        found: list = [None] * len(self.flat.leaves)
        for message, result in zip(self.messages, results, strict=True):
            for place, value in zip(message.places, self._unpack(message, result), strict=True):
                found[place] = value
        return self.flat.rebuild(found)

    def _unpack(self, message: _Message, result: Any) -> list:
        if len(message.places) == 1:
            return [result]
        if self.outs is not None:
            outs = [self.outs[place] for place in message.places]
            self.adapter.unpack_into(result, outs)
            return outs
        return self.adapter.unpack(result, [self.flat.leaves[place] for place in message.places])


def apply_to_nest(call: Call, x: Any, out: Any, group: Any, async_op: bool, timeout: float | None) -> Any:
    """Runs a verb on every array of a nest; gives the nest of results, or a Works that will."""
    nest = _NestCall(call, x, out, group, timeout)
    starts_together = async_op or (len(nest.messages) > 1 and getattr(nest.adapter, "overlaps", False))
    started = [nest.start(message, starts_together) for message in nest.messages]
    if async_op:
        return Works(started, nest.finish, call.verb)
    if starts_together:
        return Works(started, nest.finish, call.verb).wait()
    return nest.finish(started)
