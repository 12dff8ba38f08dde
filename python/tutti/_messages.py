# _messages.py: send, recv and barrier: the verbs that are not a Call on an array.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
from typing import Any

from . import _native, adapters
from ._dispatch import group_or_world
from ._errors import InvalidArgument

_BARRIER = _native.Call("barrier")


def _traced_barrier() -> Any:
    """The barrier of the program that is being traced, if one is: this one would be over before the program runs."""
    if "tutti.jax" in sys.modules and sys.modules["tutti.jax"].is_tracing():
        return sys.modules["tutti.jax"].barrier
    if "tutti.tensorflow" in sys.modules and not sys.modules["tensorflow"].executing_eagerly():
        return sys.modules["tutti.tensorflow"].barrier
    return None


def barrier(group: Any, async_op: bool, timeout: Any) -> Any:
    group = group_or_world(group)
    if (traced := _traced_barrier()) is not None:
        if async_op:
            raise InvalidArgument("barrier: async_op=True has no meaning inside a compiled program; leave it out")
        return traced(group, timeout)
    return group.start(_BARRIER, None, timeout=timeout) if async_op else group.run(_BARRIER, None, timeout=timeout)


def send(x: Any, dst: int, tag: int, group: Any, timeout: Any) -> None:
    if adapters.kind_of(x) is adapters.TREE:
        isend(x, dst, tag, group, timeout).complete()
    else:
        group_or_world(group).run_send(adapters.adapter_of(x, verb="send").memory(x, False), dst, tag, timeout)


def recv(like: Any, src: int | None, tag: int, out: Any, group: Any, timeout: Any) -> Any:
    if (like is None) == (out is None) or adapters.kind_of(like if out is None else out) is adapters.TREE:
        return irecv(like, src, tag, out, group, timeout).complete()
    group = group_or_world(group)
    if out is not None:
        group.run_recv(adapters.adapter_of(out, verb="recv").memory(out, True), src, tag, timeout)
        return out
    adapter, array = _array_like(like)
    group.run_recv(array, src, tag, timeout)
    return adapter.from_array(array, like)


def _array_like(like: Any) -> tuple[Any, Any]:
    adapter = adapters.adapter_of(like, verb="recv")
    if hasattr(adapter, "refuse_gradients"):
        adapter.refuse_gradients("recv", like)
    return adapter, _native.new_array(adapter.dtype_name(like), adapter.shape_of(like))


def isend(x: Any, dst: int, tag: int, group: Any, timeout: Any) -> Any:
    group = group_or_world(group)
    if adapters.kind_of(x) is adapters.TREE:
        from ._tree_messages import send_tree

        return send_tree(x, dst, tag, group, timeout)
    return group.start_send(adapters.adapter_of(x, verb="send").memory(x, False), dst, tag, timeout)


def irecv(like: Any, src: int | None, tag: int, out: Any, group: Any, timeout: Any) -> Any:
    group = group_or_world(group)
    if (like is None) == (out is None):
        raise InvalidArgument("recv: give either like=, an array that says what arrives, or out=, the array to fill")
    if adapters.kind_of(like if out is None else out) is adapters.TREE:
        from ._tree_messages import receive_tree

        return receive_tree(like if out is None else out, out is not None, src, tag, group, timeout)
    if out is not None:
        memory = adapters.adapter_of(out, verb="recv").memory(out, True)
        return group.start_recv(memory, src, tag, timeout, result=out)
    adapter, array = _array_like(like)
    return group.start_recv(array, src, tag, timeout, finish=lambda received: adapter.from_array(received, like))
