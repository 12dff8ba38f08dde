# compiling.py: the verbs inside torch.compile: what its tracer puts into a program in their place.
# SPDX-License-Identifier: Apache-2.0
"""Imported when torch's tracer is (see _calls/torch_compile.py). Each verb has a counterpart here with the same signature, which the
tracer follows instead: it makes the Call and finds the group at trace time, as constants of the program, and leaves one
`tutti::call` per message. What cannot be compiled raises at trace time with `fullgraph=True`; without it, it runs between
two compiled parts.
"""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import torch
import torch._dynamo
from torch._dynamo.exc import Unsupported as GraphBreak
from torch.fx.experimental.symbolic_shapes import guard_scalar

from .._arrays.fuse import FUSED_COUNT_MAX, FUSED_VERBS
from .._calls import reductions, verbs
from .._calls.dispatch import group_or_world
from .._calls.tie import tie as eager_tie
from .._errors import Error, InvalidArgument, Unsupported
from .._native import Call, Group, group_of
from .._process import lifecycle
from . import autograd, ops  # noqa: F401  (ops registers tutti::call)
from .memory import parts_of

# Parts of a program that run once, where they stand. Others (branches, loops, checkpoints) may run more often, or not.
_RUNS_ONCE = (None, "autograd.Function")


@functools.cache
def _trace_error(kind: type[Error]) -> type[Error]:
    """The error as the tracer knows it: it breaks the graph, or is raised where that is not allowed."""
    return type(kind.__name__, (GraphBreak, kind), {"__module__": kind.__module__})


@contextlib.contextmanager
def trace_errors() -> Iterator[None]:
    """Around what runs while tracing: Tutti's errors as the tracer knows them."""
    try:
        yield
    except Error as error:
        raise _trace_error(type(error))(str(error)) from None


def _checked_call(verb: str, group: Any, out: bool, async_op: bool, differentiated: bool, fields: dict) -> Call:
    if async_op:
        raise Unsupported(f"{verb}: async_op=True cannot be compiled; leave it out, or call it outside torch.compile")
    if out:
        raise Unsupported(f"{verb}: out= cannot be compiled: every result is a new tensor; use what the call gives back")
    within = _enclosing_construct()
    if within not in _RUNS_ONCE:
        raise Unsupported(
            f"{verb}: inside {within} a compiled program may run a call more often or not at all, and not as often on "
            "every rank; call it outside"
        )
    call = Call(verb, **fields)
    if call.learns_sizes:
        missing = "recv_sizes=" if verb == "all_to_all" else "sizes="
        raise Unsupported(f"{verb}: a compiled program needs the sizes of all ranks; give {missing}")
    if differentiated:
        call.adjoint(None, group.rank, group.size)  # raises where there is no gradient
    return call


def _enclosing_construct() -> str | None:
    from torch._dynamo.symbolic_convert import InstructionTranslator

    tracer = InstructionTranslator.current_tx().output.current_tracer
    while tracer is not None:
        name = None if tracer.source_target is None else str(tracer.source_target)
        if name not in _RUNS_ONCE:
            return name
        tracer = tracer.parent
    return None


@torch._dynamo.assume_constant_result
def _plan(verb: str, group: Any, out: bool, async_op: bool, differentiated: bool, **fields: Any) -> tuple[str, int]:
    """At trace time: the call's text and the group's number. `group` may be a number already."""
    with trace_errors():
        group = group_of(group) if isinstance(group, int) else group_or_world(group)
        return _checked_call(verb, group, out, async_op, differentiated, fields).encode(), group.id


@torch._dynamo.assume_constant_result
def refuse(kind: str, text: str) -> None:
    """Ends the compilation, or breaks the graph, with this error."""
    raise _trace_error({"invalid": InvalidArgument, "unsupported": Unsupported}[kind])(text)


def _trace(verb: str, x: Any, out: Any, group: Any, async_op: bool, timeout: float | None, **fields: Any) -> Any:
    leaves: list = []
    _flatten(verb, x, leaves)
    differentiated = torch.is_grad_enabled() and any([leaf.requires_grad for leaf in leaves])
    constants = {name: _fixed(value) for name, value in fields.items()}
    call, group_id = _plan(verb, group, out is not None, async_op, differentiated, **constants)

    def run(leaf: torch.Tensor) -> torch.Tensor:
        needs_grad = leaf.requires_grad and torch.is_grad_enabled()
        return torch.ops.tutti.call(leaf, call, None, group_id, needs_grad, timeout)

    if len(leaves) > 1 and verb in FUSED_VERBS:
        results = _run_fused(leaves, run)
    else:
        results = [run(leaf) for leaf in leaves]
    return _rebuild(x, results)


def _fixed(value: Any) -> Any:
    """A number that the compiler left open becomes a constant: calls are."""
    if isinstance(value, (list, tuple, range)):
        return tuple([_fixed(part) for part in value])
    return guard_scalar(value) if isinstance(value, int) else value


def _run_fused(leaves: list, run: Any) -> list:
    """Small tensors of one dtype in one message, as in eager code."""
    results = list(leaves)
    by_dtype: dict = {}
    for place, leaf in enumerate(leaves):
        if leaf.numel() > FUSED_COUNT_MAX:
            results[place] = run(leaf)
        else:
            by_dtype.setdefault(leaf.dtype, []).append(place)
    for places in by_dtype.values():
        own = [leaves[place] for place in places]
        for place, part in zip(places, parts_of(run(torch.cat([leaf.reshape(-1) for leaf in own])), own)):
            results[place] = part
    return results


def _flatten(verb: str, x: Any, leaves: list) -> None:
    """The tensors of a tree in the order of its sorted keys, the same on every rank."""
    if isinstance(x, torch.Tensor):
        leaves.append(x)
    elif isinstance(x, dict):
        for key in sorted(x):
            _flatten(verb, x[key], leaves)
    elif isinstance(x, (list, tuple)):
        for part in x:
            _flatten(verb, part, leaves)
    else:
        refuse("invalid", f"{verb}: inside torch.compile every rank passes a tensor, or a list, tuple or dict of them")


def _rebuild(x: Any, results: list) -> Any:
    """The same tree with the results, which it takes from the front of the list."""
    if isinstance(x, torch.Tensor):
        return results.pop(0)
    if isinstance(x, dict):
        found = {key: _rebuild(x[key], results) for key in sorted(x)}
        return {key: found[key] for key in x}
    parts = [_rebuild(part, results) for part in x]
    if isinstance(x, list):
        return parts
    return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)


def all_reduce(x, op="sum", *, out=None, group=None, async_op=False, timeout=None):
    return _trace("all_reduce", x, out, group, async_op, timeout, op=op)


def reduce(x, root=0, op="sum", *, out=None, group=None, async_op=False, timeout=None):
    return _trace("reduce", x, out, group, async_op, timeout, root=root, op=op)


def broadcast(x, root=0, *, out=None, group=None, async_op=False, timeout=None):
    return _trace("broadcast", x, out, group, async_op, timeout, root=root)


def all_gather(x, axis=0, *, uneven=False, sizes=None, out=None, group=None, async_op=False, timeout=None):
    return _trace("all_gather", x, out, group, async_op, timeout, axis=axis, uneven=uneven, sizes=sizes)


def gather(x, root=0, axis=0, *, uneven=False, sizes=None, out=None, group=None, async_op=False, timeout=None):
    return _trace("gather", x, out, group, async_op, timeout, root=root, axis=axis, uneven=uneven, sizes=sizes)


def reduce_scatter(x, op="sum", axis=0, *, sizes=None, out=None, group=None, async_op=False, timeout=None):
    return _trace("reduce_scatter", x, out, group, async_op, timeout, op=op, axis=axis, sizes=sizes)


def scatter(x, root=0, axis=0, *, sizes=None, out=None, group=None, async_op=False, timeout=None):
    return _trace("scatter", x, out, group, async_op, timeout, root=root, axis=axis, sizes=sizes)


def all_to_all(x, split_axis=0, concat_axis=0, *, split_sizes=None, recv_sizes=None, out=None, group=None,
               async_op=False, timeout=None):
    fields = {"axis": split_axis, "concat_axis": concat_axis, "sizes": split_sizes, "recv_sizes": recv_sizes}
    return _trace("all_to_all", x, out, group, async_op, timeout, **fields)


def scan(x, op="sum", *, out=None, group=None, async_op=False, timeout=None):
    return _trace("scan", x, out, group, async_op, timeout, op=op)


def exscan(x, op="sum", *, out=None, group=None, async_op=False, timeout=None):
    return _trace("exscan", x, out, group, async_op, timeout, op=op)


def permute(x, pairs, *, out=None, group=None, async_op=False, timeout=None):
    return _trace("permute", x, out, group, async_op, timeout, pairs=tuple(pairs))


def sendrecv(x, dst, src, tag=0, *, out=None, group=None, async_op=False, timeout=None):
    return _trace("sendrecv", x, out, group, async_op, timeout, dst=int(dst), src=int(src), tag=tag)


def premul(factor):
    return f"premul({float(guard_scalar(factor))!r})"  # by its name: the tracer keeps texts as constants, and no object of ours


def tie(loss, *results):
    leaves: list = []
    for result in results:
        _flatten("tie", result, leaves)
    return autograd.tie(loss, *leaves)


def _refused(verb: str) -> Any:
    text = f"{verb}: has no result that a compiled program could order it by; call it outside of torch.compile"

    def counterpart(*args, **options):
        return refuse("unsupported", text)

    return counterpart


_COUNTERPARTS = (all_reduce, reduce, broadcast, all_gather, gather, reduce_scatter, scatter, all_to_all, scan, exscan, permute,
          sendrecv)
_REFUSED = ("barrier", "send", "recv", "isend", "irecv", "probe", "iprobe")
_FACTS = ("id", "rank", "size", "members", "backend")


def _constant_fact(native: property) -> property:
    """The same property by a function that the tracer runs instead of looking into it."""
    getter = native.fget

    def get(group):
        return getter(group)

    return property(torch._dynamo.assume_constant_result(get), doc=native.__doc__)


def _register() -> None:
    for name in _FACTS:
        setattr(Group, name, _constant_fact(Group.__dict__[name]))
    torch._dynamo.assume_constant_result(lifecycle.world)
    torch.compiler.substitute_in_graph(eager_tie)(tie)
    torch.compiler.substitute_in_graph(reductions.premul)(premul)
    for counterpart in _COUNTERPARTS:
        torch.compiler.substitute_in_graph(getattr(verbs, counterpart.__name__))(counterpart)  # also compares the signatures
    for name in _REFUSED:
        torch.compiler.substitute_in_graph(getattr(verbs, name), skip_signature_check=True)(_refused(name))


_register()

from . import compiling_layers  # noqa: E402  (it needs the verbs' counterparts)

compiling_layers.register()
