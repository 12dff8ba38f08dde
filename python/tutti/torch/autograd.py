# autograd.py: gradients of collectives: one function over Call, by the adjoints of the core's table.
# SPDX-License-Identifier: Apache-2.0
"""The convention: the gradient of the sum of all ranks' losses. Backward is collective, too: every rank that took part in
a differentiated call takes part in its adjoint. Autograd runs the latest node first, so ranks that built the same graph
agree on the order. Each adjoint is a call like any other, and differentiable again."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from .. import _native
from .._errors import Unsupported
from .._native import Call
from .running import execute, run

# runner(call, gradient, shape): the call on a gradient, with a result of that shape, which can be differentiated again
# where somebody asked for that.
Runner = Callable[[Any, torch.Tensor, tuple], torch.Tensor]


@dataclasses.dataclass(slots=True)  # frozen ones take three times as long to make
class Taped:
    """What forward and backward need to know of a call."""

    call: Any
    adjoint: Any
    group: Any
    timeout: float | None
    shape: tuple | None = None  # of the result, where it is known and does not follow from that of the input


def tape(call: Any, x: torch.Tensor, group: Any, timeout: float | None) -> Taped:
    """Looks up how gradients flow back; raises Unsupported, before anything is sent, where there are none."""
    return Taped(call, call.adjoint(x.shape, group.rank, group.size), group, timeout)


def run_taped(x: torch.Tensor, taped: Taped, done: list | None = None) -> torch.Tensor:
    """The call on x, with a gradient. `done`: a list with the result, if it is there already."""
    function = _TransformedCollective if torch._C._are_functorch_transforms_active() else _Collective
    return function.apply(x, taped, done)[0]


def _forward(x: torch.Tensor, taped: Taped, done: list | None) -> tuple[torch.Tensor, torch.Tensor]:
    """The result, and a thread: an output without elements, kept for backward, by which a second backward is led back
    here on every rank, also where this rank's gradient is a constant."""
    if done is not None:
        y = done.pop()
    elif taped.shape is None:
        y = execute(taped.call, x, None, taped.group, True, taped.timeout)
    else:
        y = run(taped.call, x, taped.group, taped.shape, differentiated=True, timeout=taped.timeout)
    return y, torch.empty(0, dtype=x.dtype)


def _remember(ctx: Any, inputs: tuple, output: tuple) -> None:
    (x, ctx.taped, _), (y, thread) = inputs, output
    ctx.shape = x.shape
    if ctx.taped.adjoint.kind == "select":
        ctx.save_for_backward(thread, x, y)
    else:
        ctx.save_for_backward(thread, None, None)


class _Collective(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, taped: Taped, done: list | None) -> tuple[torch.Tensor, torch.Tensor]:
        output = _forward(x, taped, done)
        _remember(ctx, (x, taped, done), output)
        return output

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, _: torch.Tensor) -> tuple:
        taped = ctx.taped
        thread, x, y = ctx.saved_tensors
        runner = _eager_runner(taped, thread)
        return pull_back(taped.call, taped.adjoint, taped.group, gradient, ctx.shape, x, y, runner), None, None


class _TransformedCollective(_Collective):
    """The same in the form that torch.func asks for, which costs more."""

    forward = staticmethod(_forward)
    setup_context = staticmethod(_remember)

    @staticmethod
    def vmap(info: Any, in_dims: tuple, x: torch.Tensor, taped: Taped, done: list | None) -> tuple:
        raise Unsupported(
            f"{taped.call.verb}: inside torch.func.vmap there is no array that could be sent; call it outside, on the "
            "whole batch"
        )


class _RecordedCollective(torch.autograd.Function):
    """The same for a call that the core has run already, and whose gradient is a call and no more."""

    forward = staticmethod(_native.record_forward)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, _: torch.Tensor) -> tuple:
        recorded = ctx.recorded
        (thread,) = ctx.saved_tensors
        runner = _eager_runner(recorded, thread)
        shape = recorded.input_shape
        return pull_back(recorded.call, recorded.adjoint, recorded.group, gradient, shape, None, None, runner), None


def _found_at_once(function: type) -> None:
    """torch looks up attributes of the class in every call, by names that it makes anew, so that Python has to search all
    classes above: what they have is written into the class itself."""
    for base in function.__mro__[1:-1]:
        for name, value in vars(base).items():
            if not name.startswith("__") and name not in vars(function):
                setattr(function, name, value)


_found_at_once(_RecordedCollective)

# Past Function.apply, which looks for transforms of torch.func and for defaults of setup_context: here are none.
record = super(torch.autograd.Function, _RecordedCollective).apply


def _eager_runner(taped: Taped | _native.RecordedCall, thread: torch.Tensor) -> Runner:
    group, timeout = taped.group, taped.timeout

    def runner(call: Any, gradient: torch.Tensor, shape: tuple) -> torch.Tensor:
        if not torch.is_grad_enabled():
            return run(call, gradient, group, shape, timeout=timeout)
        adjoint = call.adjoint(None, group.rank, group.size)
        return run_taped(tie(gradient, thread), Taped(call, adjoint, group, timeout, shape))

    return runner


def pull_back(
    call: Any,
    adjoint: Any,
    group: Any,
    gradient: torch.Tensor,
    shape: tuple,
    x: torch.Tensor | None,
    y: torch.Tensor | None,
    runner: Runner,
) -> torch.Tensor:
    """The gradient of a call's input from that of its result. `shape` is the input's; min and max need x and y."""
    if adjoint.kind == "select":
        return _pull_back_selection(call, group, gradient, x, y, runner)
    if adjoint.zero:  # off the root: what reduce and gather give there is the gradient again, and not needed
        return _Tie.apply(gradient.new_zeros(shape), runner(adjoint.call, gradient, gradient.shape))
    result = runner(adjoint.call, gradient, shape)
    if adjoint.scale != 1.0:
        result = result * adjoint.scale
    return result + gradient if adjoint.adds_own else result


def _pull_back_selection(
    call: Any, group: Any, gradient: torch.Tensor, x: torch.Tensor, y: torch.Tensor, runner: Runner
) -> torch.Tensor:
    """min and max: what a sum would give goes to the ranks that hold the value; ties share it."""
    as_sum = call.replace(op="sum").adjoint(None, group.rank, group.size)
    with torch.no_grad():
        everywhere = y if call.verb == "all_reduce" else runner(as_sum.call, y, x.shape)
        holds = (x == everywhere) | (x.isnan() & everywhere.isnan())
        holders = runner(Call("all_reduce"), holds.to(torch.float32), x.shape)
        share = (holds / holders).to(gradient.dtype)
    result = runner(as_sum.call, gradient, x.shape) * share
    return result + gradient if as_sum.adds_own else result


class _Tie(torch.autograd.Function):
    """Gives back its first argument; the others get a gradient of zeros."""

    @staticmethod
    def forward(value: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        return value.view_as(value)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple:
        return gradient, *(torch.zeros_like(other) for other in ctx.saved_tensors)


def tie(loss: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
    """The loss, with a zero gradient into each of the values: so that this rank takes part in their backward."""
    needing = [value for value in values if isinstance(value, torch.Tensor) and value.requires_grad]
    return _Tie.apply(loss, *needing) if needing else loss
