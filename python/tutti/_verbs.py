# _verbs.py: the verbs, once: as functions on the world or a group=, and as methods of Group.
# SPDX-License-Identifier: Apache-2.0
#
# Each is one Python frame: it names its call and hands everything to _native.apply (or send, or recv), which serves NumPy arrays
# at once and sends everything else to _dispatch.py (or _messages.py). Calls are values and are kept, so that a loop makes none anew.
"""All verbs take ``group=`` (default: the world), ``async_op=True`` (gives a Work; ``work.wait()`` gives the result) and
``timeout=`` in seconds. Arrays of NumPy, PyTorch, JAX and TensorFlow and trees of them (lists, tuples, dicts, dataclasses) come
back as they went in."""
from __future__ import annotations

import functools
from collections.abc import Sequence

from . import _messages, _native
from ._native import Call, Group, Op, apply, apply_plain

_call = functools.lru_cache(maxsize=1024)(Call)  # values that compare equal make the same call


class _AllReduceCalls(dict):
    """By reduction. The verb that is called most gets its call by the quickest of lookups."""

    def __missing__(self, op: str | Op) -> Call:
        call = self[op] = Call("all_reduce", op=op)
        return call


_all_reduce_calls = _AllReduceCalls()


def _sizes(sizes: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if sizes is None else tuple(sizes)


def all_reduce(x, op: str | Op = "sum", *, out=None, group=None, async_op: bool = False, timeout=None):
    """Every rank gets the reduction of all ranks' arrays. ``op``: sum mean product min max band bor bxor, or premul(factor).
    ``out=x`` works in place."""
    if x is not None and out is None and group is None and timeout is None and not async_op:
        return apply_plain(_all_reduce_calls[op], x)
    return apply(_all_reduce_calls[op], x, out, group, async_op, timeout)


def reduce(x, root: int = 0, op: str | Op = "sum", *, out=None, group=None, async_op: bool = False, timeout=None):
    """The root gets the reduction of all ranks' arrays; the others get their input back."""
    return apply(_call("reduce", root=root, op=op), x, out, group, async_op, timeout)


def broadcast(x, root: int = 0, *, out=None, group=None, async_op: bool = False, timeout=None):
    """Every rank gets the root's array. In eager code the others may pass None: shape, dtype and kind of
    the array come with the data."""
    return apply(_call("broadcast", root=root), x, out, group, async_op, timeout)


def all_gather(x, axis: int | None = 0, *, uneven: bool = False, sizes: Sequence[int] | None = None, out=None, group=None,
               async_op: bool = False, timeout=None):
    """Every rank gets all ranks' arrays joined along ``axis`` (None: stacked on a new first axis). With ``uneven=True`` lengths
    along the axis may differ; ``sizes``, one per rank, spares the exchange that finds them out."""
    call = _call("all_gather", axis=axis, uneven=uneven, sizes=_sizes(sizes))
    return apply(call, x, out, group, async_op, timeout)


def gather(x, root: int = 0, axis: int | None = 0, *, uneven: bool = False, sizes: Sequence[int] | None = None, out=None,
           group=None, async_op: bool = False, timeout=None):
    """The root gets all ranks' arrays joined along ``axis``; the others get their input back."""
    call = _call("gather", root=root, axis=axis, uneven=uneven, sizes=_sizes(sizes))
    return apply(call, x, out, group, async_op, timeout)


def reduce_scatter(x, op: str | Op = "sum", axis: int | None = 0, *, sizes: Sequence[int] | None = None, out=None, group=None,
                   async_op: bool = False, timeout=None):
    """Rank r gets the r-th part along ``axis`` of the reduction of all ranks' arrays (None: the first axis, dropped)."""
    call = _call("reduce_scatter", op=op, axis=axis, sizes=_sizes(sizes))
    return apply(call, x, out, group, async_op, timeout)


def scatter(x, root: int = 0, axis: int | None = 0, *, sizes: Sequence[int] | None = None, out=None, group=None,
            async_op: bool = False, timeout=None):
    """Rank r gets the r-th part of the root's array along ``axis``; in eager code the others may pass None."""
    call = _call("scatter", root=root, axis=axis, sizes=_sizes(sizes))
    return apply(call, x, out, group, async_op, timeout)


def all_to_all(x, split_axis: int = 0, concat_axis: int = 0, *, split_sizes: Sequence[int] | None = None,
               recv_sizes: Sequence[int] | None = None, out=None, group=None, async_op: bool = False, timeout=None):
    """Splits along ``split_axis``, sends the r-th part to rank r, and joins what arrives along ``concat_axis``."""
    call = _call("all_to_all", axis=split_axis, concat_axis=concat_axis, sizes=_sizes(split_sizes), recv_sizes=_sizes(recv_sizes))
    return apply(call, x, out, group, async_op, timeout)


def scan(x, op: str | Op = "sum", *, out=None, group=None, async_op: bool = False, timeout=None):
    """Rank r gets the reduction over ranks 0 to r."""
    return apply(_call("scan", op=op), x, out, group, async_op, timeout)


def exscan(x, op: str | Op = "sum", *, out=None, group=None, async_op: bool = False, timeout=None):
    """Rank r gets the reduction over ranks 0 to r - 1; rank 0 gets the identity."""
    return apply(_call("exscan", op=op), x, out, group, async_op, timeout)


def permute(x, pairs: Sequence[tuple[int, int]], *, out=None, group=None, async_op: bool = False, timeout=None):
    """Each pair (source, destination) sends an array; zeros where nothing arrives."""
    call = _call("permute", pairs=tuple((int(source), int(destination)) for source, destination in pairs))
    return apply(call, x, out, group, async_op, timeout)


def sendrecv(x, dst: int | None, src: int | None, tag: int = 0, *, out=None, group=None, async_op: bool = False, timeout=None):
    """Sends x to ``dst`` while an array like it arrives from ``src``. None: nobody; zeros arrive from nobody."""
    call = _call("sendrecv", dst=-1 if dst is None else dst, src=-1 if src is None else src, tag=tag)
    return apply(call, x, out, group, async_op, timeout)


def barrier(*, group=None, async_op: bool = False, timeout=None):
    """Returns when every rank of the group has called it."""
    return _messages.barrier(group, async_op, timeout)


def send(x, dst: int, tag: int = 0, *, group=None, async_op: bool = False, timeout=None):
    """Sends x to rank ``dst``. Returns when x may be changed again."""
    return (_messages.isend if async_op else _native.send)(x, dst, tag, group, timeout)


def recv(like=None, src: int | None = None, tag: int = 0, *, out=None, group=None, async_op: bool = False, timeout=None):
    """An array with the shape, dtype and kind of ``like`` from rank ``src`` (None: from anyone), or fills ``out``."""
    return (_messages.irecv if async_op else _native.recv)(like, src, tag, out, group, timeout)


def isend(x, dst: int, tag: int = 0, *, group=None, timeout=None):
    """send that gives a Work at once."""
    return _messages.isend(x, dst, tag, group, timeout)


def irecv(like=None, src: int | None = None, tag: int = 0, *, out=None, group=None, timeout=None):
    """recv that gives a Work at once; after ``wait()`` its ``source`` tells whose message it was."""
    return _messages.irecv(like, src, tag, out, group, timeout)


_ARRAY_VERBS = (all_reduce, reduce, broadcast, all_gather, gather, reduce_scatter, scatter, all_to_all, scan, exscan, permute,
                sendrecv, barrier, send, recv, isend, irecv)


def _as_method(verb):
    @functools.wraps(verb)
    def method(self, *args, **options):
        return verb(*args, group=self, **options)

    return method




def _object_method(name: str):
    def method(self, *args, **options):
        from . import _objects

        return getattr(_objects, name)(*args, group=self, **options)

    method.__name__ = name
    return method


def _empty(self, shape, dtype="float32", *, like=None):
    from ._empty import empty

    return empty(shape, dtype, like=like, group=self)


OBJECT_VERBS = ("broadcast_object", "all_gather_object", "gather_object", "scatter_object")


def verbs() -> list[str]:
    """The names of all verbs."""
    return sorted([verb.__name__ for verb in _ARRAY_VERBS] + list(OBJECT_VERBS))


# isend and irecv of the native Group, which take arrays as they are, stay reachable under their own names; so does empty, which
# takes a number of bytes.
Group.start_send = Group.isend
Group.start_recv = Group.irecv
Group.memory = Group.empty
Group.empty = _empty
for _verb in _ARRAY_VERBS:
    setattr(Group, _verb.__name__, _as_method(_verb))
for _name in OBJECT_VERBS:
    setattr(Group, _name, _object_method(_name))
