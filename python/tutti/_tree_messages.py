# _tree_messages.py: trees of arrays as messages from one rank to another.
# SPDX-License-Identifier: Apache-2.0
"""One message per dtype, and one for each large array, all under the tag that was given: messages of one sender and tag
arrive in the order in which they were sent."""

from __future__ import annotations

import math
from typing import Any

from . import _native
from ._errors import InvalidArgument
from ._fuse import Places, common_adapter, plan_messages
from ._tree import flatten
from ._works import Works


def send_tree(x: Any, dst: int, tag: int, group: Any, timeout: float | None) -> Works:
    """Starts to send every array of a tree."""
    flat = flatten(x, "send")
    works = []
    if flat.leaves:
        adapter = common_adapter(flat, "send")
        for places in plan_messages(flat, adapter, fused=True):
            leaves = [flat.leaves[place] for place in places]
            packed = leaves[0] if len(leaves) == 1 else adapter.pack(leaves)
            works.append(group.start_send(adapter.memory(packed, False), dst, tag, timeout))
    return Works(works, lambda results: None, "send")


def receive_tree(tree: Any, fills: bool, src: int | None, tag: int, group: Any, timeout: float | None) -> Works:
    """Starts to receive a tree: into its own arrays, or into new ones like them."""
    if src is None:
        raise InvalidArgument("recv: a nest comes in several messages, which anyone may send: name its source")
    flat = flatten(tree, "recv")
    if not flat.leaves:
        return Works([], lambda results: tree, "recv")
    adapter = common_adapter(flat, "recv")
    if not fills and hasattr(adapter, "refuse_gradients"):
        for leaf in flat.leaves:
            adapter.refuse_gradients("recv", leaf)
    messages = plan_messages(flat, adapter, fused=True)

    def receive(places: Places) -> Any:
        leaves = [flat.leaves[place] for place in places]
        if fills and len(leaves) == 1:
            return group.start_recv(adapter.memory(leaves[0], True), src, tag, timeout, result=leaves[0])
        count = sum(math.prod(adapter.shape_of(leaf)) for leaf in leaves)
        shape = adapter.shape_of(leaves[0]) if len(leaves) == 1 else (count,)
        array = _native.new_array(adapter.dtype_name(leaves[0]), shape)
        return group.start_recv(array, src, tag, timeout, finish=lambda got: adapter.from_array(got, leaves[0]))

    def finish(results: list) -> Any:
        found: list = [None] * len(flat.leaves)
        for places, result in zip(messages, results, strict=True):
            leaves = [flat.leaves[place] for place in places]
            parts = [result] if len(leaves) == 1 else adapter.unpack(result, leaves)
            if fills and len(leaves) > 1:
                adapter.unpack_into(result, leaves)
                parts = leaves
            for place, part in zip(places, parts, strict=True):
                found[place] = part
        return flat.rebuild(found)

    return Works([receive(places) for places in messages], finish, "recv")
