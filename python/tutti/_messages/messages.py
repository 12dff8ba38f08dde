# messages.py: messages between two ranks, and barrier: the verbs that are not a Call on an array.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
from typing import Any

from .. import _native, adapters
from .._arrays.kinds import NUMBER, OBJECT, SCALAR, TREE, made_as, number_of
from .._calls.dispatch import group_or_world
from .._errors import InvalidArgument

_BARRIER = _native.Call("barrier")
TAG_MAX = 2**31 - 1


class _Nobody(int):
    """As source or destination of a message: nothing is sent, and nothing arrives."""

    def __repr__(self) -> str:
        return "tutti.nobody"

    def __reduce__(self) -> str:
        return "nobody"


nobody = _Nobody(-2)


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


def rank_from(rank: Any, name: str, verb: str) -> int:
    """A rank as the core takes it; raises for what is none."""
    try:
        number = rank.__index__()
    except (AttributeError, TypeError):
        pass
    else:
        if number == -1:  # rank - 1 on the first rank, most likely; the core would take it for any
            any_rank = "" if verb in ("send", "isend", "sendrecv") else "None takes from any, "
            raise InvalidArgument(f"{verb}: {name}=-1 is no rank in the group; {any_rank}tutti.nobody is nobody")
        return number
    if verb in ("recv", "irecv") and adapters.kind_of(rank) not in (None, adapters.NOTHING, adapters.TEXT):
        raise InvalidArgument(
            f"{verb}: src is the rank that sends, not a {type(rank).__qualname__}; an array to receive into is out=, one"
            f" of the kind to get is like=: tutti.{verb}(0, out=x)"
        )
    hint = "None means any rank only in recv, irecv and probe; nobody is tutti.nobody" if rank is None else "pass a number"
    raise InvalidArgument(f"{verb}: {name} is a rank in the group, not {rank!r:.60}; {hint}")


def tag_from(tag: Any, verb: str) -> int:
    """A tag as the core takes it; raises for what is none."""
    try:
        number = tag.__index__()
    except (AttributeError, TypeError):
        hint = "None means any tag only in recv, irecv and probe" if tag is None else "pass a number"
        raise InvalidArgument(f"{verb}: tag is a number from 0 to {TAG_MAX}, not {tag!r:.60}; {hint}") from None
    if not 0 <= number <= TAG_MAX:
        raise InvalidArgument(f"{verb}: tag {number} is not from 0 to {TAG_MAX}")
    return number


def _source(src: Any, verb: str) -> int | None:
    return None if src is None else rank_from(src, "src", verb)


def _tag(tag: Any, verb: str) -> int | None:
    return None if tag is None else tag_from(tag, verb)


def _sent(x: Any, verb: str) -> tuple[Any, int]:
    """What goes out, and the number of its kind."""
    kind = adapters.kind_of(x)
    is_number = kind == "numpy" and not hasattr(x, "__array_interface__")
    if kind in (None, adapters.TREE, adapters.TEXT, adapters.NOTHING) or (is_number and _is_large(x)):
        from .trees import encoded_object, encoded_tree

        return encoded_tree(x, verb) if kind is adapters.TREE else encoded_object(x, verb)
    is_scalar = kind == "numpy" and not hasattr(x, "__setitem__")
    return adapters.adapter_of(x).memory(x, False), NUMBER if is_number else SCALAR if is_scalar else number_of(kind)


def _is_large(number: Any) -> bool:
    return isinstance(number, int) and not -(2**63) <= number < 2**63


def send(x: Any, dst: Any, tag: Any, group: Any, timeout: Any) -> None:
    group, dst, tag = group_or_world(group), rank_from(dst, "dst", "send"), tag_from(tag, "send")
    data, kind = _sent(x, "send")
    group.run_send(data, dst, tag, timeout, kind)


def isend(x: Any, dst: Any, tag: Any, group: Any, timeout: Any) -> Any:
    group, dst, tag = group_or_world(group), rank_from(dst, "dst", "isend"), tag_from(tag, "isend")
    data, kind = _sent(x, "send")
    return group.start_send(data, dst, tag, timeout, kind)


def made(array: _native.Array, like: Any) -> Any:
    """What came, as it was sent; or as `like`, an array of the kind to get or a tree of them."""
    if array.kind in (OBJECT, TREE):
        from .trees import decoded

        return decoded(array, like)
    if adapters.kind_of(like) is adapters.TREE:
        raise _no_tree(array)
    return made_as(array, like)


def _no_tree(array: _native.Array) -> InvalidArgument:
    return InvalidArgument(
        f"recv: rank {array.source} sent an array ({array.dtype}, shape {array.shape}), and no tree; receive it without"
        " a tree in like= and out="
    )


def _destination(like: Any, out: Any, verb: str) -> Any:
    """The memory of an array to fill; None: what comes decides."""
    if like is not None and out is not None:
        raise InvalidArgument(f"{verb}: give like=, an array of the kind to get, or out=, the array to fill, but not both")
    if like is not None and adapters.kind_of(like) is not adapters.TREE:
        adapter = adapters.adapter_of(like, "like", verb)
        if hasattr(adapter, "refuse_gradients"):
            adapter.refuse_gradients("recv", like)
    if out is None or adapters.kind_of(out) is adapters.TREE:
        return None
    return adapters.adapter_of(out, "out", verb).memory(out, True)


def _filled(array: _native.Array, tree: Any) -> Any:
    from .trees import fill

    if array.kind not in (OBJECT, TREE):
        raise _no_tree(array)
    return fill(tree, array)


def recv(src: Any, tag: Any, like: Any, out: Any, group: Any, timeout: Any) -> Any:
    group, memory = group_or_world(group), _destination(like, out, "recv")
    array = group.run_recv(memory, _source(src, "recv"), _tag(tag, "recv"), timeout)
    if array is None:
        return out
    return made(array, like) if out is None else _filled(array, out)


def irecv(src: Any, tag: Any, like: Any, out: Any, group: Any, timeout: Any) -> Any:
    group, memory = group_or_world(group), _destination(like, out, "irecv")
    src, tag = _source(src, "irecv"), _tag(tag, "irecv")
    if memory is not None:
        return group.start_recv(memory, src, tag, timeout, result=out)
    return group.start_recv(
        None, src, tag, timeout, result=out, finish=lambda array: made(array, like) if out is None else _filled(array, out)
    )


class Message:
    """A message that probe or iprobe has found. It is reserved: no other receive gets it. ::

        message = tutti.probe(src=None)
        x = np.empty(message.shape, message.dtype)
        message.recv(out=x)

    A message that is not received goes back when this object is dropped, before all others like it.
    """

    __slots__ = ("_found", "source", "tag", "count", "dtype", "shape")

    def __init__(self, found: _native.FoundMessage):
        self._found = found
        self.source: int = found.source  #: the rank in the group that sent it
        self.tag: int = found.tag
        self.count: int = found.count  #: elements
        self.dtype: str = found.dtype  #: of the elements, such as "float32"; of a tree or an object: "uint8"
        self.shape: tuple[int, ...] = tuple(found.shape)

    def recv(self, *, like: Any = None, out: Any = None, timeout: Any = None) -> Any:
        """The array, tree or object; as tutti.recv gives it.

        Raises InvalidArgument where it was received before, and Mismatch where out has too little room.
        """
        array = self._found.recv(_destination(like, out, "recv"), timeout)
        if array is None:
            return out
        return made(array, like) if out is None else _filled(array, out)

    def __repr__(self) -> str:
        state = "" if self._found.is_valid else ", received"
        return f"<tutti.Message {self.dtype} of shape {self.shape} from rank {self.source}, tag {self.tag}{state}>"


def probe(src: Any, tag: Any, group: Any, timeout: Any) -> Message:
    src = _source(src, "probe")
    if src == nobody:
        raise InvalidArgument("probe: tutti.nobody sends nothing; probe a rank of the group, or None: any")
    return Message(_native.probe(group_or_world(group), src, _tag(tag, "probe"), timeout))


def iprobe(src: Any, tag: Any, group: Any) -> Message | None:
    found = _native.iprobe(group_or_world(group), _source(src, "iprobe"), _tag(tag, "iprobe"))
    return None if found is None else Message(found)
