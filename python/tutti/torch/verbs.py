# verbs.py: the verbs on torch tensors in eager code: zero copy, with gradients.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import torch

from .. import _native
from .._arrays.kinds import with_kind
from .._calls.dispatch import with_sizes
from .._errors import Error, InvalidArgument, Unsupported
from . import sparse
from .autograd import record, run_taped, tape
from .gpu import is_on_gpu
from .memory import refusal
from .running import execute, refused, start, written

_PLAIN_TYPES = frozenset({torch.Tensor, torch.nn.Parameter})

_modes = torch._C._len_torch_dispatch_stack
_grad_enabled = torch.is_grad_enabled

def _any_requires_grad(*tensors: torch.Tensor) -> bool:
    return any(tensor.requires_grad for tensor in tensors)


# Blocking calls on plain tensors are served by the core (python/bindings/tensor.cpp) by these.
_native.serve_tensors(
    {
        "Tensor": torch.Tensor,
        "Parameter": torch.nn.Parameter,
        "modes": _modes,
        "transforms": torch._C._are_functorch_transforms_active,
        "grad_enabled": _grad_enabled,
        "any_requires_grad": getattr(torch._C, "_any_requires_grad", _any_requires_grad),
        "new_thread": torch.empty(0).detach,  # the quickest way to make a tensor without elements
        "written": written,
        "record": record,
    }
)


def apply(call: Any, x: torch.Tensor | None, out: Any, group: Any, async_op: bool, timeout: float | None) -> Any:
    """Runs the call on one tensor; gives a new tensor, `out`, or a Work for either. Here comes by what the core does not
    serve at once: asynchronous calls, tensors that are traced, transformed or not plain memory, and whatever is wrong."""
    call = with_kind(call, "torch") if call.root_gives else call
    if call.verb == "all_reduce" and x.layout is torch.sparse_coo:
        return sparse.all_reduce(call, x, out, group, async_op, timeout)
    if call.verb == "sendrecv" and is_on_gpu(x):  # a message, and those move the CPU's memory
        return _through_host(call, x, out, group, async_op, timeout)
    differentiated = x is not None and x.requires_grad and _grad_enabled()
    if out is not None:
        error = _what_is_wrong(call, x, out)
        if error is not None:
            raise refused(error, call, group)
    elif (_modes() or type(x) not in _PLAIN_TYPES) and not async_op and _is_traced(x):
        return _through_dispatcher(call, x, group, differentiated, timeout)
    if not differentiated:
        if async_op:
            return start(call, x, out, group, False, timeout, lambda y: y)
        return execute(call, x, out, group, False, timeout)
    if call.learns_sizes:
        call = with_sizes(call, x, group)
    try:
        taped = tape(call, x, group, timeout)
    except Error as error:
        raise refused(error, call, group) from None
    return _start_taped(taped, x) if async_op else run_taped(x, taped)


def _through_host(call: Any, x: torch.Tensor, out: Any, group: Any, async_op: bool, timeout: float | None) -> Any:
    if async_op or out is not None:
        raise refused(
            Unsupported(f"{call.verb}: a tensor on {x.device} is sent by way of the host, without async_op and out="),
            call,
            group,
        )
    return apply(call, x.cpu(), None, group, False, timeout).to(x.device)


def _start_taped(taped: Any, x: torch.Tensor) -> Any:
    def finish(y: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():  # it was on when the call began
            return run_taped(x, taped, [y])

    return start(taped.call, x, None, taped.group, True, taped.timeout, finish)


def _is_traced(x: torch.Tensor) -> bool:
    """Whether somebody records what is done with tensors (fake ones, make_fx, export): the call has to be an operator."""
    from torch._subclasses.fake_tensor import FakeTensor

    return _modes() > 0 or isinstance(x, FakeTensor)


def _through_dispatcher(
    call: Any, x: torch.Tensor, group: Any, differentiated: bool, timeout: float | None
) -> torch.Tensor:
    from .ops import call_operator

    return call_operator(call, x, group, differentiated=differentiated, timeout=timeout)


def _what_is_wrong(call: Any, x: torch.Tensor | None, out: Any) -> Error | None:
    if not isinstance(out, torch.Tensor):
        return InvalidArgument(
            f"{call.verb}: out is a {type(out).__module__}.{type(out).__qualname__}; the result goes into a torch.Tensor"
        )
    if ((x is not None and x.requires_grad) or out.requires_grad) and _grad_enabled():
        return Unsupported(
            f"{call.verb}: out= under autograd would overwrite what backward needs; leave it out, or use no_grad()"
        )
    if out.is_conj() or out.is_neg():
        return InvalidArgument(f"{call.verb}: out is a conjugated or negated view; pass the tensor it is a view of")
    return refusal(out, f"{call.verb}, out=")


def refuse_gradients(verb: str, x: Any) -> None:
    """send and recv cut the graph between ranks; raises Unsupported where somebody would expect gradients."""
    if isinstance(x, torch.Tensor) and x.requires_grad and _grad_enabled():
        raise Unsupported(
            f"{verb}: the tensor requires grad, but {verb} carries no gradients; use sendrecv or permute, which do, "
            "or pass x.detach()"
        )
