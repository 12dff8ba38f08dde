# verbs.py: the verbs as functions on the world or a group=. group.py makes methods of them, tools/verb_types.py stubs.
# SPDX-License-Identifier: Apache-2.0
#
# Each is one Python frame: it names its call and hands everything to _native.apply (or send, or recv), which serves NumPy arrays
# at once and sends everything else to dispatch.py (or messages.py). Calls are values and are kept, so that a loop makes none anew.
"""All verbs take ``group=`` (default: the world), ``async_op=True`` (gives a Work; ``work.wait()`` gives the result) and
``timeout=`` in seconds. Arrays of NumPy, PyTorch, JAX and TensorFlow and trees of them (lists, tuples, dicts, dataclasses) come
back as they went in."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _native
from .._errors import InvalidArgument
from .._messages import messages
from .._messages.verbs import barrier, iprobe, irecv, isend, probe, recv, send
from .._native import Call, Op, apply, apply_plain
from .dispatch import reject, reject_keywords

if TYPE_CHECKING:
    from .._native import Group, Timeout
    from .type_names import AnyReduction, Reduction, T

_call = functools.lru_cache(maxsize=1024)(Call)  # values that compare equal make the same call


class _AllReduceCalls(dict):
    """By reduction. The verb that is called most gets its call by the quickest of lookups."""

    def __missing__(self, op: str | Op) -> Call:
        call = self[op] = Call("all_reduce", op=op)
        return call


_all_reduce_calls = _AllReduceCalls()


def _sizes(sizes: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if sizes is None else tuple(sizes)


_NUMBERS = (int, float, complex)
_WRONG = (InvalidArgument, TypeError, ValueError)  # what may be raised where a call is made of its arguments


def _is_number(x) -> bool:
    return isinstance(x, _NUMBERS) or hasattr(x, "ndim")  # those with axes have been told apart, which costs less


def _is_first(axis) -> bool:
    return isinstance(axis, int) and axis == 0  # it may be anything, also an array


def _by_own_function(error: Exception, verb: str, op, x, root: int, out, group, async_op: bool, timeout):
    """Called where `op` was refused: raises that again unless it is a function."""
    from . import own_op

    if not own_op.is_own(op):
        reject(verb, group, error, op=op, root=root)
    members = _native.world() if group is None else group
    if not isinstance(members, _native.Group) or members.rank < 0:
        return all_gather(x, group=group)  # says what is wrong with it
    return own_op.reduce_by(op, verb, x, root, out, members, async_op, timeout)


def all_reduce(x: T, op: AnyReduction[T] = "sum", *, out: T | None = None, group: Group | None = None, async_op: bool = False,
               timeout: Timeout = None, **others) -> T:
    """Every rank gets the reduction of all ranks' arrays.

    x: an array, a number, or a tree of arrays; alike on every rank.
    op: sum, mean, product, min, max, band, bor, bxor, or tutti.premul(factor); or a function of two arrays that gives one of the
        same shape. It is associative and gets its operands in the order of ranks; of a tree, each pair of arrays.
    out: an array for the result, which may be x itself; not for JAX and TensorFlow, nor under autograd.

    Raises InvalidArgument for the mean of integers and where out does not fit.

    Example::

        total = tutti.all_reduce(np.full(3, rank))
        assert (total == sum(range(size))).all()
        largest = tutti.all_reduce(rank, op="max")
        assert largest == size - 1
        longest = tutti.all_reduce(np.array([1.0, rank]), op=lambda a, b: np.where(a < b, b, a))
        assert longest[1] == size - 1
    """
    if others:
        reject_keywords(all_reduce, group, others)
    try:
        call = _all_reduce_calls[op]
    except _WRONG as error:
        return _by_own_function(error, "all_reduce", op, x, 0, out, group, async_op, timeout)
    if x is not None and out is None and group is None and timeout is None and not async_op:
        return apply_plain(call, x)
    return apply(call, x, out, group, async_op, timeout)


def reduce(x: T, root: int = 0, op: AnyReduction[T] = "sum", *, out: T | None = None, group: Group | None = None,
           async_op: bool = False, timeout: Timeout = None, **others) -> T:
    """The root gets the reduction of all ranks' arrays; the others get their input back.

    x: an array, a number, or a tree of arrays; alike on every rank.
    root: the rank in the group that gets it.
    op: as in all_reduce.
    out: an array for the result, on every rank.

    Raises InvalidArgument where there is no rank `root`, for the mean of integers, and where out does not fit.

    Example::

        total = tutti.reduce(np.ones(2), root=0)
        assert (total == (size if rank == 0 else 1)).all()
    """
    if others:
        reject_keywords(reduce, group, others)
    try:
        call = _call("reduce", root=root, op=op)
    except _WRONG as error:
        return _by_own_function(error, "reduce", op, x, root, out, group, async_op, timeout)
    return apply(call, x, out, group, async_op, timeout)


def broadcast(x: T | None, root: int = 0, *, out: T | None = None, group: Group | None = None, async_op: bool = False,
              timeout: Timeout = None, **others) -> T:
    """Every rank gets the root's array.

    x: the array, or a tree of arrays. In eager code the other ranks may pass None: shape, dtype and kind of the array
        come with the data. Under a compiler every rank passes an array of the same shape.
    root: the rank in the group that has it.
    out: an array for the result.

    Raises InvalidArgument where there is no rank `root`, and Mismatch where another rank's array has another shape.

    Example::

        x = tutti.broadcast(np.arange(3) if rank == 0 else None)
        assert x.tolist() == [0, 1, 2]
    """
    if others:
        reject_keywords(broadcast, group, others)
    try:
        call = _call("broadcast", root=root)
    except _WRONG as error:
        reject("broadcast", group, error, root=root)
    return apply(call, x, out, group, async_op, timeout)


def all_gather(x: T, axis: int | None = 0, *, uneven: bool = False, sizes: Sequence[int] | None = None, out: T | None = None,
               group: Group | None = None, async_op: bool = False, timeout: Timeout = None, **others) -> T:
    """Every rank gets all ranks' arrays joined along an axis, in the order of ranks.

    x: an array, a number, or a tree of arrays.
    axis: along which they are joined; None stacks them on a new first axis, as numbers always are.
    uneven: lengths along the axis may differ; the ranks tell each other first.
    sizes: the lengths, one per rank, which spares that exchange; required for uneven calls under a compiler.
    out: an array for the result.

    Raises InvalidArgument where x has no such axis or out does not fit, and Mismatch where shapes differ otherwise.

    Example::

        assert tutti.all_gather(rank).tolist() == list(range(size))
        rows = tutti.all_gather(np.full((1, 2), rank))
        assert rows.shape == (size, 2) and rows[:, 0].tolist() == list(range(size))
        parts = tutti.all_gather(np.full(rank + 1, rank), uneven=True)
        assert len(parts) == size * (size + 1) // 2
    """
    if others:
        reject_keywords(all_gather, group, others)
    if getattr(x, "ndim", 0) == 0 and _is_number(x) and _is_first(axis):
        axis, uneven = None, False
    try:
        call = _call("all_gather", axis=axis, uneven=uneven, sizes=_sizes(sizes))
    except _WRONG as error:
        reject("all_gather", group, error, axis=axis)
    return apply(call, x, out, group, async_op, timeout)


def gather(x: T, root: int = 0, axis: int | None = 0, *, uneven: bool = False, sizes: Sequence[int] | None = None,
           out: T | None = None, group: Group | None = None, async_op: bool = False, timeout: Timeout = None, **others) -> T:
    """The root gets all ranks' arrays joined along an axis, in the order of ranks; the others get their input back.

    x, axis, uneven, sizes, out: as in all_gather.
    root: the rank in the group that gets them.

    Raises InvalidArgument where there is no rank `root` or no such axis, and Mismatch where shapes differ.

    Example::

        rows = tutti.gather(np.full((1, 2), rank), root=0)
        assert rows.shape == ((size, 2) if rank == 0 else (1, 2))
    """
    if others:
        reject_keywords(gather, group, others)
    if getattr(x, "ndim", 0) == 0 and _is_number(x) and _is_first(axis):
        axis, uneven = None, False
    try:
        call = _call("gather", root=root, axis=axis, uneven=uneven, sizes=_sizes(sizes))
    except _WRONG as error:
        reject("gather", group, error, root=root, axis=axis)
    return apply(call, x, out, group, async_op, timeout)


def reduce_scatter(x: T, op: Reduction = "sum", axis: int | None = 0, *, sizes: Sequence[int] | None = None, out: T | None = None,
                   group: Group | None = None, async_op: bool = False, timeout: Timeout = None, **others) -> T:
    """Rank r gets the r-th part of the reduction of all ranks' arrays.

    x: an array, or a tree of arrays; alike on every rank.
    op: as in all_reduce.
    axis: along which the reduction is cut; None takes the first axis, one element per rank, and drops it.
    sizes: the lengths of the parts, one per rank; without it they are equal.
    out: an array for the result.

    Raises InvalidArgument where the length does not divide and sizes= is not given.

    Example::

        part = tutti.reduce_scatter(np.arange(2 * size))
        assert part.tolist() == [2 * rank * size, (2 * rank + 1) * size]
    """
    if others:
        reject_keywords(reduce_scatter, group, others)
    try:
        call = _call("reduce_scatter", op=op, axis=axis, sizes=_sizes(sizes))
    except _WRONG as error:
        reject("reduce_scatter", group, error, op=op)
    return apply(call, x, out, group, async_op, timeout)


def scatter(x: T | None, root: int = 0, axis: int | None = 0, *, sizes: Sequence[int] | None = None, out: T | None = None,
            group: Group | None = None, async_op: bool = False, timeout: Timeout = None, **others) -> T:
    """Rank r gets the r-th part of the root's array.

    x: the array, or a tree of arrays. In eager code the other ranks may pass None, as in broadcast.
    root: the rank in the group that has it.
    axis, sizes, out: as in reduce_scatter.

    Raises InvalidArgument where there is no rank `root`, and where the length does not divide and sizes= is not given.

    Example::

        part = tutti.scatter(np.arange(3 * size) if rank == 0 else None)
        assert part.tolist() == [3 * rank, 3 * rank + 1, 3 * rank + 2]
    """
    if others:
        reject_keywords(scatter, group, others)
    try:
        call = _call("scatter", root=root, axis=axis, sizes=_sizes(sizes))
    except _WRONG as error:
        reject("scatter", group, error, root=root)
    return apply(call, x, out, group, async_op, timeout)


def all_to_all(x: T, split_axis: int = 0, concat_axis: int = 0, *, split_sizes: Sequence[int] | None = None,
               recv_sizes: Sequence[int] | None = None, out: T | None = None, group: Group | None = None, async_op: bool = False,
               timeout: Timeout = None, **others) -> T:
    """Cuts x into one part per rank, sends the r-th part to rank r, and joins what arrives.

    x: an array, or a tree of arrays.
    split_axis, concat_axis: along which it is cut, and along which the parts that arrive are joined.
    split_sizes: the lengths of the parts, one per rank; without it they are equal.
    recv_sizes: the lengths of what arrives, if they are known; required for uneven calls under a compiler. Compared with what the
        others send.
    out: an array for the result.

    Raises InvalidArgument where the length does not divide and split_sizes= is not given, and Mismatch where recv_sizes= is not what
    is sent.

    Example::

        y = tutti.all_to_all(np.arange(size) + 10 * rank)
        assert y.tolist() == [rank + 10 * other for other in range(size)]
    """
    if others:
        reject_keywords(all_to_all, group, others)
    try:
        call = _call("all_to_all", axis=split_axis, concat_axis=concat_axis, sizes=_sizes(split_sizes), recv_sizes=_sizes(recv_sizes))
    except _WRONG as error:
        reject("all_to_all", group, error, split_axis=split_axis)
    return apply(call, x, out, group, async_op, timeout)


def scan(x: T, op: AnyReduction[T] = "sum", *, out: T | None = None, group: Group | None = None, async_op: bool = False,
         timeout: Timeout = None, **others) -> T:
    """Rank r gets the reduction over ranks 0 to r.

    x, op, out: as in all_reduce.

    Raises InvalidArgument for the mean of integers and where out does not fit.

    Example::

        assert tutti.scan(1) == rank + 1
    """
    if others:
        reject_keywords(scan, group, others)
    try:
        call = _call("scan", op=op)
    except _WRONG as error:
        return _by_own_function(error, "scan", op, x, 0, out, group, async_op, timeout)
    return apply(call, x, out, group, async_op, timeout)


def exscan(x: T, op: AnyReduction[T] = "sum", *, out: T | None = None, group: Group | None = None, async_op: bool = False,
           timeout: Timeout = None, **others) -> T:
    """Rank r gets the reduction over ranks 0 to r - 1; rank 0 gets the identity, such as 0 for a sum.

    x, op, out: as in all_reduce.

    Raises InvalidArgument for the mean of integers and where out does not fit.

    Example::

        begin = tutti.exscan(100)        # where this rank's 100 elements begin among all
        assert begin == 100 * rank
    """
    if others:
        reject_keywords(exscan, group, others)
    try:
        call = _call("exscan", op=op)
    except _WRONG as error:
        return _by_own_function(error, "exscan", op, x, 0, out, group, async_op, timeout)
    return apply(call, x, out, group, async_op, timeout)


def permute(x: T, pairs: Sequence[tuple[int, int]], *, out: T | None = None, group: Group | None = None, async_op: bool = False,
            timeout: Timeout = None, **others) -> T:
    """Each pair (source, destination) sends an array; a rank to which nothing is sent gets zeros.

    x: an array, or a tree of arrays; alike on every rank.
    pairs: the same on every rank; each rank at most once as source and once as destination.
    out: an array for the result.

    Raises InvalidArgument where a rank occurs twice or does not exist.

    Example::

        right = [(r, (r + 1) % size) for r in range(size)]
        y = tutti.permute(np.array([rank]), right)
        assert y[0] == (rank - 1) % size
    """
    if others:
        reject_keywords(permute, group, others)
    try:
        call = _call("permute", pairs=tuple((int(source), int(destination)) for source, destination in pairs))
    except (TypeError, ValueError) as error:
        if not isinstance(error, InvalidArgument):
            error = InvalidArgument(f"permute: pairs={pairs!r} is no list of pairs of ranks, such as [(0, 1), (1, 0)]")
        reject("permute", group, error)
    return apply(call, x, out, group, async_op, timeout)


def sendrecv(x: T, dst: int, src: int, tag: int = 0, *, out: T | None = None, group: Group | None = None, async_op: bool = False,
             timeout: Timeout = None, **others) -> T:
    """Sends x to one rank while an array like it arrives from another.

    x: an array, or a tree of arrays.
    dst, src: ranks in the group; tutti.nobody: nothing is sent, and zeros arrive.
    tag: a number that the messages carry; they meet those with the same one.
    out: an array for the result.

    Raises InvalidArgument where there is no such rank or out does not fit, and Mismatch where another array arrives.

    Example::

        y = tutti.sendrecv(np.array([rank]), dst=(rank + 1) % size, src=(rank - 1) % size)
        assert y[0] == (rank - 1) % size
    """
    if others:
        reject_keywords(sendrecv, group, others)
    if not (type(dst) is int and type(src) is int and type(tag) is int and 0 <= tag <= messages.TAG_MAX and dst != -1 != src):
        dst, src = messages.rank_from(dst, "dst", "sendrecv"), messages.rank_from(src, "src", "sendrecv")
        tag = messages.tag_from(tag, "sendrecv")
    return apply(_call("sendrecv", dst=dst, src=src, tag=tag), x, out, group, async_op, timeout)


ARRAY_VERBS = (all_reduce, reduce, broadcast, all_gather, gather, reduce_scatter, scatter, all_to_all, scan, exscan, permute,
               sendrecv, barrier, send, recv, isend, irecv, probe, iprobe)
# Brought by modules that a small program should not load: which.
OBJECT_VERBS = {
    **dict.fromkeys(("broadcast_object", "all_gather_object", "gather_object", "scatter_object"), "_objects.verbs"),
    **dict.fromkeys(("send_object", "recv_object"), "_messages.trees"),
}


def verbs() -> list[str]:
    """The names of all verbs."""
    return sorted([verb.__name__ for verb in ARRAY_VERBS] + list(OBJECT_VERBS))
