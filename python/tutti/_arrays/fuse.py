# fuse.py: one verb on a tree of arrays, in few messages.
# SPDX-License-Identifier: Apache-2.0
"""Verbs that treat each element by itself (all_reduce, broadcast, …) run on the tree's arrays laid end to end, one
message per dtype; large arrays, which a copy would cost more than a message saves, go by themselves. The other verbs
run once per array, all started before the first is waited for where the framework allows it.

Lists, tuples and dicts of arrays that exist are served by the core (python/bindings/fused.cpp), in the same messages
and under the same hash; here is everything else: other containers, asynchronous calls, programs that are traced or
differentiated, and whatever is wrong."""

from __future__ import annotations

import functools
import math
from types import ModuleType
from typing import Any

from .. import adapters
from .._calls.dispatch import tell_refusal
from .._calls.works import Works
from .._errors import Aborted, InvalidArgument, Unsupported
from .._native import Call, call_names, plan_fused
from .tree import Flat, flatten, hash_of

FUSED_VERBS = frozenset(name for name in call_names() if Call(name).keeps_shape)
# Elements of one array above which torch's compiled programs, whose bytes are not known yet, send it by itself.
FUSED_COUNT_MAX = 1 << 12


Places = tuple[int, ...]  # leaves that travel together, by their places in the flattened tree


@functools.lru_cache(maxsize=1024)
def _with_structure(call: Call, structure: int) -> Call:
    return call.replace(structure=structure)


@functools.lru_cache(maxsize=256)
def _stacking(call: Call) -> Call:
    return call.replace(axis=None, uneven=False)


def _joins_numbers(call: Call, leaf: Any, adapter: ModuleType) -> bool:
    return call.verb in ("all_gather", "gather") and call.axis == 0 and not adapter.shape_of(leaf)


def _check_can_be_cut(call: Call, x: Any) -> None:
    """Raises for a list of numbers, which others take for the parts."""
    if call.verb not in ("scatter", "reduce_scatter", "all_to_all"):
        return
    flat = flatten(x, call.verb)
    for leaf, path in zip(flat.leaves, flat.paths, strict=True):
        if adapters.kind_of(leaf) == "numpy" and not adapters.get("numpy").shape_of(leaf):
            instead = " or, for an object per rank, scatter_object(values)" if call.verb == "scatter" else ""
            raise InvalidArgument(
                f"{call.verb}: {path} is a number, which cannot be cut: in a list each element is an array of its own; pass"
                f" numpy.array(values){instead}"
            )


def common_adapter(flat: Flat, verb: str) -> ModuleType:
    first = adapters.adapter_of(flat.leaves[0], flat.paths[0], verb)
    for leaf, path in zip(flat.leaves, flat.paths, strict=True):
        adapter = adapters.adapter_of(leaf, path, verb)
        if adapter is not first:
            one, other = (module.__name__.rpartition(".")[2] for module in (first, adapter))
            raise InvalidArgument(
                f"{verb}: the tree holds a {one} array at {flat.paths[0]} and a {other} array at {path}; "
                "convert them to one framework, or make one call each"
            )
    return first


def _describe_fused(verb: str):
    def describe(leaf: Any, path: str) -> str:
        adapter = adapters.adapter_of(leaf, path, verb)
        return f"{adapter.dtype_name(leaf)}{tuple(adapter.shape_of(leaf))}"

    return describe


def plan_messages(flat: Flat, adapter: ModuleType, fused: bool, group: Any = None) -> list[Places]:
    """Which leaves travel together. The same on every rank, as it follows from the structure and the group alone."""
    if not fused:
        return [(place,) for place in range(len(flat.leaves))]
    items = [(math.prod(adapter.shape_of(leaf)), adapter.dtype_name(leaf)) for leaf in flat.leaves]
    return [tuple(places) for places in plan_fused(items, group)]


def _check_out(leaf: Any, out: Any, adapter: ModuleType, where: str) -> None:
    """The native check of one array, made before several are packed."""
    if adapters.adapter_of(out, where) is not adapter:
        raise InvalidArgument(f"{where} is of another framework than the input")
    given, needed = (f"{adapter.dtype_name(x)} of shape {tuple(adapter.shape_of(x))}" for x in (out, leaf))
    if given != needed:
        raise InvalidArgument(f"{where} is {given}, but the result is {needed}")
    if hasattr(adapter, "is_writable") and not adapter.is_writable(out):
        raise InvalidArgument(f"{where} is read-only; pass a writable one")


def outs_of(x: Any, out: Any, flat: Flat, adapter: ModuleType, verb: str) -> list:
    """The arrays for the results, in the order of the input's."""
    outs = flatten(out, verb)
    if outs.text != flatten(x, verb).text:
        raise InvalidArgument(
            f"{verb}: out is built differently from the input; give a tree with the same keys and lengths"
        )
    if verb in FUSED_VERBS:
        for leaf, each, path in zip(flat.leaves, outs.leaves, outs.paths, strict=True):
            _check_out(leaf, each, adapter, f"{verb}: the array for the result at {path}")
    return outs.leaves


class _TreeCall:
    """One verb on one tree."""

    def __init__(self, call: Call, x: Any, out: Any, group: Any, timeout: float | None):
        fused = call.verb in FUSED_VERBS
        self.flat = flatten(x, call.verb, _describe_fused(call.verb)) if fused else flatten(x, call.verb)
        self.call = _with_structure(call, hash_of(self.flat.text))
        self.group = group
        self.timeout = timeout
        self.messages: list[Places] = []
        self.adapter, self.outs = None, None
        if not self.flat.leaves:
            return
        self.adapter = common_adapter(self.flat, call.verb)
        for leaf in self.flat.leaves:
            adapters.check(self.adapter, leaf)
        if out is not None:
            self.outs = outs_of(x, out, self.flat, self.adapter, call.verb)
        fusible = fused and (out is None or hasattr(self.adapter, "unpack_into"))
        self.messages = plan_messages(self.flat, self.adapter, fusible, group)

    @property
    def starts_together(self) -> bool:
        return len(self.messages) > 1 and getattr(self.adapter, "overlaps", False)

    def start(self, places: Places, async_op: bool) -> Any:
        """Runs or starts one message; what comes back is a result or a Work."""
        leaves = [self.flat.leaves[place] for place in places]
        if len(leaves) == 1:
            out = None if self.outs is None else self.outs[places[0]]
            call = _stacking(self.call) if _joins_numbers(self.call, leaves[0], self.adapter) else self.call
            return self.adapter.apply(call, leaves[0], out, self.group, async_op, self.timeout)
        packed = self.adapter.pack(leaves)
        in_place = self.call.verb == "all_reduce" and getattr(self.adapter, "packs_a_copy", False)
        return self.adapter.apply(self.call, packed, packed if in_place else None, self.group, async_op, self.timeout)

    def finish(self, results: list) -> Any:
        """The tree of results from those of the messages."""
        found: list = [None] * len(self.flat.leaves)
        for places, result in zip(self.messages, results, strict=True):
            for place, value in zip(places, self._unpack(places, result), strict=True):
                found[place] = value
        return self.flat.rebuild(found)

    def _unpack(self, places: Places, result: Any) -> list:
        if len(places) == 1:
            return [result]
        if self.outs is not None:
            outs = [self.outs[place] for place in places]
            self.adapter.unpack_into(result, outs)
            return outs
        return self.adapter.unpack(result, [self.flat.leaves[place] for place in places])


def _calls_started_together(call: Call, x: Any) -> int:
    """How many calls other ranks have entered where this one refuses a tree like theirs."""
    try:
        flat = flatten(x, call.verb)
        adapter = adapters.adapter_of(flat.leaves[0]) if flat.leaves else None
    except (InvalidArgument, Unsupported):
        return 1
    return len(flat.leaves) if call.verb not in FUSED_VERBS and getattr(adapter, "overlaps", False) else 1


def _start_all(tree: _TreeCall) -> list:
    """All messages under way. One that fails at its start, here or because another rank has refused it, takes those that follow with
    it: ranks that had nothing to refuse have started them, and the group stays usable if all have taken the same calls."""
    started: list = []
    try:
        for places in tree.messages:
            started.append(tree.start(places, True))
    except (InvalidArgument, Unsupported, Aborted) as error:
        for _ in tree.messages[len(started) + 1 :]:
            tell_refusal(tree.group, tree.call, error)
        raise
    return started


def apply_to_tree(call: Call, x: Any, out: Any, group: Any, async_op: bool, timeout: float | None) -> Any:
    """Runs a verb on every array of a tree; gives the tree of results, or a Works that will."""
    try:
        _check_can_be_cut(call, x)
    except (InvalidArgument, Unsupported) as error:
        # Where only the root of a scatter has a list, the others make one call, with None.
        for _ in range(1 if call.verb == "scatter" else _calls_started_together(call, x)):
            tell_refusal(group, call, error)
        raise
    try:
        tree = _TreeCall(call, x, out, group, timeout)
    except (InvalidArgument, Unsupported) as error:
        for _ in range(_calls_started_together(call, x)):
            tell_refusal(group, call, error)
        raise
    if not async_op and not tree.starts_together:
        return tree.finish([tree.start(places, False) for places in tree.messages])
    works = Works(_start_all(tree), tree.finish, call.verb)
    return works if async_op else works.complete()
