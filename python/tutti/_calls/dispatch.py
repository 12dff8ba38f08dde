# dispatch.py: finds the adapter that serves a call's object, or takes a tree apart.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NoReturn

from .. import _native, adapters
from .._arrays.kinds import with_kind
from .._errors import Error, InvalidArgument, Unsupported
from .._native import Call


def group_or_world(group: _native.Group | None) -> _native.Group:
    """The group that was given, or the world; raises InvalidArgument before init(), and for what is no group."""
    if group is None:
        return _native.world()
    if not isinstance(group, _native.Group):
        from .hints import group_hint

        raise InvalidArgument(group_hint(group))
    return group


def dispatch(call: Call, x: Any, out: Any, group: Any, async_op: bool, timeout: Any) -> Any:
    """What _native.apply does not serve itself: everything but plain NumPy arrays."""
    group = group_or_world(group)
    kind = adapters.kind_of(x)
    if kind is adapters.TREE:
        from .._arrays.fuse import apply_to_tree

        return apply_to_tree(call, x, out, group, async_op, timeout)
    try:
        adapter = _adapter_of(call, x, out)
        if x is not None:
            adapters.check(adapter, x)
            call = with_kind(call, kind) if call.root_gives else call
    except (InvalidArgument, Unsupported) as error:
        tell_refusal(group, call, error)
        raise
    return adapter.apply(call, x, out, group, async_op, timeout)


def _adapter_of(call: Call, x: Any, out: Any) -> Any:
    if x is None and call.root_gives:  # in eager code only the root need have an array
        return adapters.get("numpy") if out is None else adapters.adapter_of(out, "out", call.verb)
    return adapters.adapter_of(x, verb=call.verb)


def tell_refusal(group: _native.Group, call: Call, error: Exception) -> None:
    """Tells the others what this rank refused before the core has seen it, so that they do not wait for it."""
    if group.rank >= 0:
        group.refuse(call, str(error))


def _has_arrays(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_arrays, value))
    kind = adapters.kind_of(value)
    is_other = kind in (None, adapters.TREE, adapters.TEXT, adapters.NOTHING)
    return not is_other and (kind != "numpy" or hasattr(value, "__array_interface__"))


def _said_of(verb: str, name: str, value: Any) -> Error | None:
    """What the core has against an argument of a call."""
    try:
        Call(verb, **{name: value})
    except Error as said:
        return said
    except TypeError:  # the call has another name for it
        return None
    return None


def reject(verb: str, group: Any, error: Exception, **given: Any) -> NoReturn:
    """Raises what is wrong with the arguments of a call that could not be made of them, once the others are told: they may
    have entered it. `given`: arguments that are often mistaken for one of another library's."""
    wrong = error if isinstance(error, Error) else InvalidArgument(f"{verb}: {error}")
    for name, value in given.items():
        if _has_arrays(value):
            from .hints import array_hint

            wrong = InvalidArgument(array_hint(verb, name))
        elif isinstance(error, TypeError) and not isinstance(value, Hashable):  # it stopped at the table of known calls
            wrong = _said_of(verb, name, value) or wrong
    try:
        tell_refusal(group_or_world(group), Call(verb), wrong)
    except Error:
        pass  # before init(), or with what is no group, there are no others
    raise wrong from (None if wrong is error else error)


def refuse_keywords(called: Any, others: dict[str, Any]) -> NoReturn:
    """Raises for keywords that a function or class does not have, and says what they are here."""
    import inspect

    from .hints import keyword_hint

    name, known = next(iter(others)), [each for each in inspect.signature(called).parameters if each != "others"]
    raise InvalidArgument(f"{called.__name__}: there is no {name}={keyword_hint(called.__name__, name, known)}")


def reject_keywords(verb: Any, group: Any, others: dict[str, Any]) -> NoReturn:
    """The same for a verb, once the other ranks are told."""
    try:
        refuse_keywords(verb, others)
    except InvalidArgument as wrong:
        reject(verb.__name__, group if isinstance(group, _native.Group) else None, wrong)


def with_sizes(call: Call, x: Any, group: _native.Group) -> Call:
    """The call with the sizes of all ranks, which compilers and gradients need: exchanged now if it has none."""
    if not call.learns_sizes:
        return call
    import array

    sizes = array.array("q", [0] * group.size)
    if call.verb == "all_to_all":
        group.run(Call("all_to_all"), array.array("q", call.sizes), sizes)
        return call.replace(recv_sizes=sizes.tolist())
    group.run(Call("all_gather"), array.array("q", [x.shape[call.axis]]), sizes)
    return call.replace(sizes=sizes.tolist())
