# group.py: what Group has in Python: the verbs as methods, and an answer to names that it does not have.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from .._native import Group
from .._process.when_imported import when_imported
from .dispatch import reject_keywords
from .verbs import ARRAY_VERBS, OBJECT_VERBS

Function = Callable[..., Any]


def _as_method(verb: Function) -> Function:
    code = verb.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(verb)
    def method(self: Group, *args: Any, **options: Any) -> Any:
        try:
            return verb(*args, group=self, **options)
        except TypeError:
            if others := {name: value for name, value in options.items() if name not in known}:
                reject_keywords(verb, self, others)
            raise

    method.__qualname__ = f"Group.{verb.__name__}"
    return method


def _show_parameters(verb: Function) -> None:
    """What help() shows: the keywords that a verb has, and not that it has an answer to others; of a method, no group."""
    import inspect

    method = vars(Group)[verb.__name__]
    known = inspect.signature(verb)
    own = [parameter for parameter in known.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    verb.__signature__ = known.replace(parameters=own)  # type: ignore[attr-defined]
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    without_group = [parameter for parameter in own if parameter.name != "group"]
    method.__signature__ = known.replace(parameters=[me, *without_group])  # type: ignore[attr-defined]


class _LaterMethod:
    """A verb that brings more with it than a small program should load: it is imported when it is first asked for."""

    def __init__(self, name: str, home: str) -> None:
        self._name, self._home = name, home

    def __get__(self, group: Group | None, owner: type[Group]) -> Any:
        home = importlib.import_module(f"..{self._home}", __package__)
        verb = getattr(home, self._name)
        setattr(Group, self._name, _as_method(verb))
        when_imported("inspect", functools.partial(_show_parameters, verb))
        return getattr(owner if group is None else group, self._name)


def _unknown(self: Group, name: str) -> Any:
    """For names that are not found only; those that exist are looked up as before."""
    if name.startswith("_"):  # Python's own questions, which expect no advice
        raise AttributeError(f"'Group' object has no attribute {name!r}")
    from .hints import group_name_hint

    raise AttributeError(f"a tutti.Group has no {name}" + group_name_hint(name, dir(Group)), name=name, obj=self)


def install() -> None:
    """At the end of `import tutti`."""
    for verb in ARRAY_VERBS:
        setattr(Group, verb.__name__, _as_method(verb))
    when_imported("inspect", lambda: [_show_parameters(verb) for verb in ARRAY_VERBS])
    for name, home in {**OBJECT_VERBS, "empty": "_arrays.empty"}.items():
        setattr(Group, name, _LaterMethod(name, home))
    Group.__getattr__ = _unknown
    Group.__module__ = "tutti"
