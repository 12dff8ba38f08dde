# trees.py: trees of arrays and Python objects as messages from one rank to another.
# SPDX-License-Identifier: Apache-2.0
"""A tree or an object is one message, in the encoding of _objects/encoding.py: so it can be received from any rank, probed and
cancelled as an array can. Of a tree with classes of its own (dataclasses, named tuples, pytrees), which are not sent, only the
structure's number and the leaves travel: its receiver has to have such a tree, as like= or out=."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, adapters
from .._arrays.kinds import OBJECT, TREE, made_as
from .._arrays.tree import Flat, flatten, hash_of
from .._calls.dispatch import group_or_world
from .._errors import InvalidArgument, Mismatch
from .._objects.decoding import decode
from .._objects.encoding import encode
from .messages import _source, _tag, rank_from, tag_from

if TYPE_CHECKING:
    from .._native import Group, Timeout


def _bytes(value: Any, name: str, allow_pickle: bool = False) -> np.ndarray:
    return np.frombuffer(b"".join(encode(value, name, allow_pickle)), np.uint8)


def _check_leaves(flat: Flat, verb: str) -> None:
    for leaf in flat.leaves:
        adapter = None if adapters.kind_of(leaf) in (None, adapters.TEXT) else adapters.adapter_of(leaf)
        if hasattr(adapter, "refuse_gradients"):
            adapter.refuse_gradients(verb, leaf)


def _refused(error: InvalidArgument, verb: str) -> InvalidArgument:
    pickled = "pass it to send_object with allow_pickle=True, and receive it by recv_object with the same"
    return InvalidArgument(f"{verb}: {error}".replace("pass allow_pickle=True on every rank", pickled))


def encoded_object(value: Any, verb: str) -> tuple[np.ndarray[Any, Any], int]:
    """What is no array and no tree, as send_object sends it."""
    try:
        return _bytes(value, "the object"), OBJECT
    except InvalidArgument as error:
        raise _refused(error, verb) from None


def encoded_tree(tree: Any, verb: str) -> tuple[np.ndarray[Any, Any], int]:
    """A tree as bytes, and the kind of message that they are. Its leaves may be objects, too."""
    flat = flatten(tree, verb)
    _check_leaves(flat, verb)
    try:
        return _bytes(tree, "the tree"), OBJECT
    except InvalidArgument as first:
        leaves = [leaf if adapters.kind_of(leaf) != "dlpack" else adapters.adapter_of(leaf).memory(leaf, False) for leaf in flat.leaves]
        try:
            return _bytes([hash_of(flat.text), leaves], "the tree"), TREE
        except InvalidArgument:
            raise _refused(first, verb) from None


def _value_of(array: _native.Array, allow_pickle: bool = False) -> Any:
    return decode(memoryview(array.numpy()), f"rank {array.source}", allow_pickle)


def _leaves_of(array: _native.Array, pattern: Flat) -> list:
    """The leaves of a tree that came, which has to be one like the pattern."""
    if array.kind == TREE:
        number, leaves = _value_of(array)
    else:
        flat = flatten(_value_of(array), "recv")
        number, leaves = hash_of(flat.text), flat.leaves
    if number != hash_of(pattern.text):
        raise Mismatch(f"recv: the tree that rank {array.source} sent has another structure than the one given here")
    return leaves


def _array_of(leaf: Any) -> _native.Array:
    """A copy of a leaf that came, in memory that any framework can take over."""
    adapter = adapters.adapter_of(leaf)
    array = _native.new_array(adapter.dtype_name(leaf), adapter.shape_of(leaf))
    _native.copy_elements(adapter.memory(leaf, False), array)
    return array


def _as(leaf: Any, like: Any) -> Any:
    same = adapters.kind_of(leaf) == adapters.kind_of(like) and isinstance(leaf, np.ndarray) == isinstance(like, np.ndarray)
    return leaf if same else made_as(_array_of(leaf), like)


def decoded(array: _native.Array, like: Any) -> Any:
    """The tree or object that came; or, as `like`, a tree of its structure and kinds of arrays."""
    if adapters.kind_of(like) is adapters.TREE:
        pattern = flatten(like, "recv")
        leaves = _leaves_of(array, pattern)
        return pattern.rebuild([_as(leaf, other) for leaf, other in zip(leaves, pattern.leaves, strict=True)])
    if like is not None:
        raise InvalidArgument(f"recv: rank {array.source} sent a tree or an object, and no array like the one in like=")
    if array.kind == TREE:
        raise InvalidArgument(
            f"recv: the tree that rank {array.source} sent has classes of its own, which are not sent; pass such a tree as"
            " like= or out="
        )
    return _value_of(array)


def fill(tree: Any, array: _native.Array) -> Any:
    """Copies what came into the arrays of a tree."""
    pattern = flatten(tree, "recv")
    for leaf, to, path in zip(_leaves_of(array, pattern), pattern.leaves, pattern.paths, strict=True):
        try:
            _native.copy_elements(adapters.adapter_of(leaf).memory(leaf, False), adapters.adapter_of(to).memory(to, True))
        except Mismatch as error:
            raise Mismatch(f"recv: at {path} of the tree that rank {array.source} sent: {error}") from None
    return tree


def send_object(
    value: object, dst: int, tag: int = 0, *, group: Group | None = None, async_op: bool = False,
    timeout: Timeout = None, allow_pickle: bool = False,
) -> None:
    """Sends a Python object to another rank.

    value: the object; see broadcast_object for what can be sent.
    dst: the rank in the group; tutti.nobody: nothing is sent.
    tag: a number that the message carries; a receive with the same one takes it.
    allow_pickle: also sends what has no encoding of its own; the receiver has to allow it, too.

    Raises InvalidArgument, naming the place in the object, where it cannot be encoded; nothing is sent then.

    Example::

        if rank == 0:
            for other in range(1, size):
                tutti.send_object({"lr": 0.1, "names": ["a", "b"]}, dst=other)
        else:
            assert tutti.recv_object(src=0)["names"] == ["a", "b"]
    """
    group, dst, tag = group_or_world(group), rank_from(dst, "dst", "send_object"), tag_from(tag, "send_object")
    data = _bytes(value, "the object", allow_pickle)
    return (group.start_send if async_op else group.run_send)(data, dst, tag, timeout, OBJECT)


def recv_object(
    src: int | None = None, tag: int | None = 0, *, group: Group | None = None, async_op: bool = False,
    timeout: Timeout = None, allow_pickle: bool = False,
) -> Any:
    """A Python object that another rank sends.

    src: the rank in the group; None: any; tutti.nobody: nothing comes, and the result is None.
    tag: the number that the message carries; None: any.
    allow_pickle: takes pickles, which run code of their sender's choice.

    Raises InvalidArgument where a pickle comes and is not allowed, and where an array comes that was sent by send.

    Example::

        if rank > 0:
            tutti.send_object(("result", rank), dst=0, tag=1)
        else:
            found = sorted(tutti.recv_object(src=None, tag=1) for _ in range(1, size))
            assert found == [("result", other) for other in range(1, size)]
    """
    group, src, tag = group_or_world(group), _source(src, "recv_object"), _tag(tag, "recv_object")

    def finish(array: _native.Array) -> Any:
        if array.kind != OBJECT:
            raise InvalidArgument(
                f"recv_object: rank {array.source} sent an array ({array.dtype}, shape {array.shape}); recv takes arrays"
            )
        return _value_of(array, allow_pickle)

    if async_op:
        return group.start_recv(None, src, tag, timeout, finish=finish)
    array = group.run_recv(None, src, tag, timeout)
    return None if array is None else finish(array)
