# ops.py: collectives as one operator of torch, for torch.compile, export and other tools that inspect operators.
# SPDX-License-Identifier: Apache-2.0
"""`tutti::call` runs a Call, given as its text, on a tensor; the result is always new memory. Three things keep
compiled programs in step with each other:

1. It is registered as an ordered effect: compilers keep every call, used or not, and all of them in program order,
   forward and backward, whatever they know of the tensors on this rank. Two equal calls stay two calls.
2. Whether a call takes part in differentiation is an argument, and travels in the signature that ranks compare.
3. Its gradient is `tutti::call` again, by the same table of adjoints as in eager code.
"""
from __future__ import annotations

import functools
from typing import Any

import torch
from torch._library.effects import EffectType

from .._native import Call, group_of
from .autograd import pull_back
from .memory import symbolic_shape
from .running import run

_NAME = "tutti::call"

torch.library.define(
    _NAME,
    "(Tensor x, str call, SymInt[]? shape, int group, bool differentiated, float? timeout=None) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)


@functools.lru_cache(maxsize=4096)
def _decoded(text: str) -> Call:
    return Call.decode(text)


@torch.library.impl(_NAME, "CPU")
def _run_on_cpu(
    x: torch.Tensor, call: str, shape: list[int] | None, group: int, differentiated: bool, timeout: float | None = None
) -> torch.Tensor:
    return run(_decoded(call), x, group_of(group), shape, differentiated=differentiated, timeout=timeout)


@torch.library.register_fake(_NAME)
def _fake(
    x: torch.Tensor, call: str, shape: list | None, group: int, differentiated: bool, timeout: float | None = None
) -> torch.Tensor:
    if shape is None:
        member = group_of(group)
        shape = symbolic_shape(_decoded(call), x.shape, member.rank, member.size)
    return x.new_empty(shape)


def _setup_context(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:
    x, text, _, group, _, ctx.timeout = inputs
    ctx.call, ctx.group = _decoded(text), group_of(group)
    ctx.shape = x.shape
    ctx.adjoint = ctx.call.adjoint(None, ctx.group.rank, ctx.group.size)
    if ctx.adjoint.kind == "select":
        ctx.save_for_backward(x, output)


def _backward(ctx: Any, gradient: torch.Tensor) -> tuple:
    x, y = ctx.saved_tensors if ctx.adjoint.kind == "select" else (None, None)

    def runner(call: Call, value: torch.Tensor, shape: tuple) -> torch.Tensor:
        return call_operator(call, value, ctx.group, shape, differentiated=torch.is_grad_enabled(), timeout=ctx.timeout)

    result = pull_back(ctx.call, ctx.adjoint, ctx.group, gradient, ctx.shape, x, y, runner)
    return result, None, None, None, None, None


torch.library.register_autograd(_NAME, _backward, setup_context=_setup_context)
torch.library._register_effectful_op(_NAME, EffectType.ORDERED)


def call_operator(
    call: Call,
    x: torch.Tensor,
    group: Any,
    shape: tuple | None = None,
    *,
    differentiated: bool = False,
    timeout: float | None = None,
) -> torch.Tensor:
    """The call through torch's dispatcher, where fake tensors, tracers and profilers see it."""
    return torch.ops.tutti.call(x, call.encode(), shape, group.id, differentiated, timeout)
