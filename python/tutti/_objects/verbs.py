# verbs.py: the verbs for Python objects: broadcast_object, all_gather_object, gather_object, scatter_object.
# SPDX-License-Identifier: Apache-2.0
"""Objects travel as bytes in an encoding by type (encoding.py). Around each is a frame that says where it
ends, so that one uneven call moves all of them. A rank whose object has no encoding sends its refusal instead:
nobody waits for it, everybody who would have got the object learns why, and the group stays in step."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from .._arrays.tree import hash_of
from .._calls.dispatch import group_or_world, reject
from .._errors import Error, InvalidArgument
from .decoding import decode
from .encoding import encode

if TYPE_CHECKING:
    from .._calls.type_names import T
    from .._native import Group, Timeout

_MAGIC = b"tutti-1"
_HEAD = struct.Struct(f"<{len(_MAGIC)}scQ")
_OBJECT, _REFUSAL = b"o", b"r"
_STRUCTURE = hash_of("objects")  # so that a rank that calls the verb for arrays instead finds out


def _frame(value: Any, name: str, allow_pickle: bool) -> bytes:
    try:
        kind, pieces = _OBJECT, encode(value, name, allow_pickle)
    except InvalidArgument as error:
        kind, pieces = _REFUSAL, [str(error).encode()]
    return b"".join([_HEAD.pack(_MAGIC, kind, sum(map(len, pieces))), *pieces])


def _body_of(data: memoryview, sender: str, verb: str) -> tuple[memoryview, memoryview]:
    """What the first frame holds, and what follows it. Raises the refusal if it is one."""
    if len(data) < _HEAD.size:
        raise Error(f"{verb}: {sender} sent {len(data)} bytes, which are no object")
    magic, kind, length = _HEAD.unpack(data[: _HEAD.size])
    body, rest = data[_HEAD.size : _HEAD.size + length], data[_HEAD.size + length :]
    if magic != _MAGIC or kind not in (_OBJECT, _REFUSAL) or len(body) != length:
        raise Error(f"{verb}: {sender} sent {len(data)} bytes that are no object of this version of Tutti")
    if kind == _REFUSAL:
        raise InvalidArgument(f"{sender}: {verb}: {str(body, 'utf-8', 'replace')}")
    return body, rest


def _take_frame(data: memoryview, sender: str, verb: str, allow_pickle: bool) -> tuple[Any, memoryview]:
    """The object of the first frame, and what follows it."""
    body, rest = _body_of(data, sender, verb)
    return decode(body, sender, allow_pickle), rest


def _run(group: Any, call: Any, frame: bytes | None, finish: Callable, async_op: bool, timeout: float | None) -> Any:
    data = None if frame is None else np.frombuffer(frame, np.uint8)
    if async_op:
        return group.start_sized(call, data, timeout=timeout, finish=lambda array: finish(memoryview(array.numpy())))
    return finish(memoryview(group.run_sized(call, data, timeout=timeout).numpy()))


def _name(rank: int, group: Any) -> str:
    return f"rank {rank} of {group.size}"


def broadcast_object(
    value: T | None = None, root: int = 0, *, group: Group | None = None, async_op: bool = False,
    timeout: Timeout = None, allow_pickle: bool = False,
) -> T:
    """The root's object, on every rank. What the others pass is ignored.

    value: the object.
    root: the rank in the group that has it.
    allow_pickle: also sends what has no encoding of its own; on every rank.

    Objects are None, bool, int, float, complex, str, bytes, lists, tuples, dicts (and OrderedDicts) and sets of them, and
    arrays of NumPy and the frameworks. Anything else needs ``allow_pickle=True`` on every rank: a pickle runs code of its sender's
    choice, so use it only among ranks that trust each other. Every rank gets an object of its own, the root too.

    Raises InvalidArgument on every rank, naming the place in the object, if it cannot be encoded.

    Example::

        config = tutti.broadcast_object({"lr": 0.1, "sizes": [64, 10]} if rank == 0 else None)
        assert config["sizes"] == [64, 10]
    """
    group = group_or_world(group)
    frame = _frame(value, "the object", allow_pickle) if group.rank == root else None

    def finish(data: memoryview) -> Any:
        return _take_frame(data, _name(root, group), "broadcast_object", allow_pickle)[0]

    return _run(group, _call("broadcast", group, root=root), frame, finish, async_op, timeout)


def _call(verb: str, group: Any, **options: Any) -> _native.Call:
    try:
        return _native.Call(verb, **options)
    except InvalidArgument as error:
        reject(verb, group, error)


def _take_all(data: memoryview, group: Any, verb: str, allow_pickle: bool) -> list:
    objects = []
    for rank in range(group.size):
        value, data = _take_frame(data, _name(rank, group), verb, allow_pickle)
        objects.append(value)
    if len(data):
        raise Error(f"{verb}: {len(data)} bytes follow the last object")
    return objects


def all_gather_object(
    value: T, *, group: Group | None = None, async_op: bool = False,
    timeout: Timeout = None, allow_pickle: bool = False,
) -> list[T]:
    """A list of every rank's object, in the order of ranks, on every rank.

    value, allow_pickle: as in broadcast_object.

    Raises InvalidArgument on every rank, naming the rank and the place in its object, if one cannot be encoded.

    Example::

        hosts = tutti.all_gather_object({"rank": rank, "host": tutti.context().host})
        assert [host["rank"] for host in hosts] == list(range(size))
    """
    group = group_or_world(group)
    call = _native.Call("all_gather", uneven=True, structure=_STRUCTURE)
    frame = _frame(value, "the object", allow_pickle)
    return _run(
        group, call, frame, lambda data: _take_all(data, group, "all_gather_object", allow_pickle), async_op, timeout
    )


def gather_object(
    value: T, root: int = 0, *, group: Group | None = None, async_op: bool = False,
    timeout: Timeout = None, allow_pickle: bool = False,
) -> list[T] | None:
    """A list of every rank's object on the root; None on the others.

    value, allow_pickle: as in broadcast_object.
    root: the rank in the group that gets them.

    Raises InvalidArgument, on the root and on the rank whose object cannot be encoded.

    Example::

        names = tutti.gather_object(f"rank {rank}")
        assert names == ([f"rank {r}" for r in range(size)] if rank == 0 else None)
    """
    group = group_or_world(group)
    call = _call("gather", group, root=root, uneven=True, structure=_STRUCTURE)
    frame = _frame(value, "the object", allow_pickle)

    def finish(data: memoryview) -> list | None:
        if group.rank != root:
            _body_of(data, _name(group.rank, group), "gather_object")  # raises if this rank's object was refused
            return None
        return _take_all(data, group, "gather_object", allow_pickle)

    return _run(group, call, frame, finish, async_op, timeout)


def _frames_to_scatter(values: Any, group: Any, allow_pickle: bool) -> list[bytes]:
    """One frame per rank; the same refusal for all if one of them has to be refused."""
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes)) and len(values) == group.size:
        frames = [_frame(value, f"object {rank}", allow_pickle) for rank, value in enumerate(values)]
        refused = [frame for frame in frames if _HEAD.unpack_from(frame)[1] == _REFUSAL]
        return refused[:1] * group.size if refused else frames
    given = f"{len(values)} objects" if isinstance(values, Sequence) else f"a {type(values).__qualname__}"
    text = f"the root gave {given}; it takes a list of {group.size}, one for each rank".encode()
    return [_HEAD.pack(_MAGIC, _REFUSAL, len(text)) + text] * group.size


def scatter_object(
    values: Sequence[T] | None = None, root: int = 0, *, group: Group | None = None, async_op: bool = False,
    timeout: Timeout = None, allow_pickle: bool = False,
) -> T:
    """The object at this rank's place in the root's list. What the others pass is ignored.

    values: one object per rank.
    root: the rank in the group that has them.
    allow_pickle: as in broadcast_object.

    Raises InvalidArgument on every rank if the list has another length, or an object cannot be encoded.

    Example::

        part = tutti.scatter_object([[r] * r for r in range(size)] if rank == 0 else None)
        assert part == [rank] * rank
    """
    group = group_or_world(group)
    call, frame = _call("scatter", group, root=root), None
    if group.rank == root:
        frames = _frames_to_scatter(values, group, allow_pickle)
        call, frame = call.replace(sizes=[len(part) for part in frames]), b"".join(frames)

    def finish(data: memoryview) -> Any:
        return _take_frame(data, _name(root, group), "scatter_object", allow_pickle)[0]

    return _run(group, call, frame, finish, async_op, timeout)
