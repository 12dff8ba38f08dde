# group.py: what Group has in Python: the verbs as methods, and an answer to names that it does not have.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .._native import Group
from .dispatch import reject_keywords
from .verbs import ARRAY_VERBS


def _as_method(verb: Callable[..., Any]) -> Callable[..., Any]:
    known = inspect.signature(verb)

    @functools.wraps(verb)
    def method(self: Group, *args: Any, **options: Any) -> Any:
        try:
            return verb(*args, group=self, **options)
        except TypeError:
            if others := {name: value for name, value in options.items() if name not in known.parameters}:
                reject_keywords(verb, self, others)
            raise

    own = [parameter for parameter in known.parameters.values() if parameter.name != "group"]
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = known.replace(parameters=[me, *own])  # type: ignore[attr-defined]  # what help() shows
    method.__qualname__ = f"Group.{verb.__name__}"
    return method


# The object verbs bring more with them than a small program should load, so each is imported when it is called.


def _broadcast_object(self, value=None, root: int = 0, *, async_op: bool = False, timeout=None, allow_pickle: bool = False):
    """tutti.broadcast_object() in this group."""
    from .._objects.verbs import broadcast_object

    return broadcast_object(value, root, group=self, async_op=async_op, timeout=timeout, allow_pickle=allow_pickle)


def _all_gather_object(self, value, *, async_op: bool = False, timeout=None, allow_pickle: bool = False):
    """tutti.all_gather_object() in this group."""
    from .._objects.verbs import all_gather_object

    return all_gather_object(value, group=self, async_op=async_op, timeout=timeout, allow_pickle=allow_pickle)


def _gather_object(self, value, root: int = 0, *, async_op: bool = False, timeout=None, allow_pickle: bool = False):
    """tutti.gather_object() in this group."""
    from .._objects.verbs import gather_object

    return gather_object(value, root, group=self, async_op=async_op, timeout=timeout, allow_pickle=allow_pickle)


def _scatter_object(self, values=None, root: int = 0, *, async_op: bool = False, timeout=None, allow_pickle: bool = False):
    """tutti.scatter_object() in this group."""
    from .._objects.verbs import scatter_object

    return scatter_object(values, root, group=self, async_op=async_op, timeout=timeout, allow_pickle=allow_pickle)


def _send_object(self, value, dst: int, tag: int = 0, *, async_op: bool = False, timeout=None, allow_pickle: bool = False):
    """tutti.send_object() in this group."""
    from .._messages.trees import send_object

    return send_object(value, dst, tag, group=self, async_op=async_op, timeout=timeout, allow_pickle=allow_pickle)


def _recv_object(self, src=None, tag=0, *, async_op: bool = False, timeout=None, allow_pickle: bool = False):
    """tutti.recv_object() in this group."""
    from .._messages.trees import recv_object

    return recv_object(src, tag, group=self, async_op=async_op, timeout=timeout, allow_pickle=allow_pickle)


def _empty(self, shape, dtype="float32", *, like=None):
    """tutti.empty() for this group."""
    from .._arrays.empty import empty

    return empty(shape, dtype, like=like, group=self)


def _unknown(self: Group, name: str) -> Any:
    """For names that are not found only; those that exist are looked up as before."""
    if name.startswith("_"):  # Python's own questions, which expect no advice
        raise AttributeError(f"'Group' object has no attribute {name!r}")
    from .hints import group_name_hint

    raise AttributeError(f"a tutti.Group has no {name}" + group_name_hint(name, dir(Group)), name=name, obj=self)


def install() -> None:
    """At the end of `import tutti`."""
    Group.memory = Group.empty  # the native Group's, which takes a number of bytes
    for verb in ARRAY_VERBS:
        setattr(Group, verb.__name__, _as_method(verb))
    for method in (_broadcast_object, _all_gather_object, _gather_object, _scatter_object, _send_object, _recv_object,
                   _empty):
        method.__name__ = method.__name__.removeprefix("_")
        method.__qualname__ = f"Group.{method.__name__}"
        setattr(Group, method.__name__, method)
    Group.__getattr__ = _unknown
    Group.__module__ = "tutti"
