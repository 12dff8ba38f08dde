# running.py: calls on tensors, where their elements lie.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.graph import increment_version

from .._calls.dispatch import tell_refusal, with_sizes
from .._errors import InvalidArgument
from .gpu import is_on_gpu, seen
from .memory import from_array, new_result, refusal, resolved



def run(
    call: Any,
    x: torch.Tensor,
    group: Any,
    shape: tuple | None = None,
    *,
    differentiated: bool = False,
    timeout: float | None = None,
) -> torch.Tensor:
    """The call where every rank knows the shape of its result: `shape`, or what follows from that of x."""
    y = _new_result(call, x, group) if shape is None else x.new_empty(shape)
    try:
        group.run(call, seen(_input(call, x, group)), seen(y), differentiated=differentiated, timeout=timeout)
    except Exception as error:
        raise clearer(error, call, x) from None
    return y


def execute(
    call: Any, x: torch.Tensor | None, out: torch.Tensor | None, group: Any, differentiated: bool, timeout: float | None
) -> torch.Tensor:
    """The call in eager code, where ranks may learn the shape of the result from each other."""
    call, learns = _settled(call, x, out, group)
    if not learns and out is None:
        return run(call, x, group, differentiated=differentiated, timeout=timeout)
    method = group.run_sized if learns else group.run
    y = _known_result(call, x, out, group, learns)
    try:
        array = method(call, seen(_input(call, x, group)), seen(y), differentiated=differentiated, timeout=timeout)
    except Exception as error:
        raise clearer(error, call, x) from None
    return _delivered(array, y, out)


def start(
    call: Any,
    x: torch.Tensor | None,
    out: torch.Tensor | None,
    group: Any,
    differentiated: bool,
    timeout: float | None,
    finish: Callable[[torch.Tensor], Any],
) -> Any:
    """The same without waiting: a Work, whose result is what `finish` makes of the tensor."""
    call, learns = _settled(call, x, out, group)
    y = _known_result(call, x, out, group, learns)
    source = _input(call, x, group)
    check = _watch(source, call.verb)

    def deliver(array: Any) -> Any:
        check()
        return finish(_delivered(array, y, out))

    method = group.start_sized if learns else group.start
    try:
        return method(call, seen(source), seen(y), differentiated=differentiated, timeout=timeout, finish=deliver)
    except Exception as error:
        raise clearer(error, call, x) from None


def _settled(call: Any, x: torch.Tensor | None, out: torch.Tensor | None, group: Any) -> tuple[Any, bool]:
    """The call, and whether the shape of its result is learned from other ranks while it runs. On GPUs it is not: every rank
    passes a tensor, and sizes are told before."""
    if not (is_on_gpu(x) or is_on_gpu(out)):
        return call, call.learns_sizes or call.root_gives
    return (with_sizes(call, x, group) if call.learns_sizes else call), False


def _input(call: Any, x: torch.Tensor | None, group: Any) -> torch.Tensor | None:
    return None if x is None or (call.root_gives and group.rank != call.root) else resolved(x)


def _known_result(
    call: Any, x: torch.Tensor | None, out: torch.Tensor | None, group: Any, learns: bool
) -> torch.Tensor | None:
    """Where the result goes; None where its shape is learned."""
    if out is not None:
        return out
    if learns and (call.learns_sizes or (call.verb == "scatter" and group.rank != call.root)):
        return None
    return _new_result(call, x, group)


def _new_result(call: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
    try:
        return new_result(call, x, group)
    except Exception as error:  # the core has not seen the call, and the others wait for it
        raise refused(clearer(error, call, x), call, group) from None


def _delivered(array: Any, y: torch.Tensor | None, out: torch.Tensor | None) -> torch.Tensor:
    if y is None:
        return from_array(array)
    return y if out is None else written(out)


def written(out: torch.Tensor) -> torch.Tensor:
    """Marks a tensor of the caller as changed, so that autograd notices where its old elements are needed."""
    increment_version((out,))
    return out


def _watch(x: torch.Tensor | None, verb: str) -> Callable[[], None]:
    """What tells, once the call has ended, whether somebody wrote to the input while it was under way."""
    if x is None or x.is_inference():  # inference tensors do not count their versions
        return lambda: None
    version = x._version

    def check() -> None:
        if x._version != version:
            raise InvalidArgument(
                f"{verb}: the input was changed before wait(), so some ranks may have seen old and some new elements; "
                "wait first, or pass a copy: x.clone()"
            )

    return check


def clearer(error: Exception, call: Any, x: torch.Tensor | None) -> Exception:
    """What is wrong with the tensor, if it is the tensor."""
    return error if x is None else refusal(x, call.verb) or error


def refused(error: Exception, call: Any, group: Any) -> Exception:
    """The error to raise for a call that this rank will not make, once the others know."""
    tell_refusal(group, call, error)
    return error
