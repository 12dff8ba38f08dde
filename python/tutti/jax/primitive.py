# primitive.py: every verb inside JAX: one primitive that runs a Call on an array.
# SPDX-License-Identifier: Apache-2.0
"""Its parameters are values: the Call, the group's number, the shape of the result on this rank, the timeout in seconds
or None, whether the call takes part in differentiation, and whether its program is waited for. How it differentiates and
batches is in rules.py.

Compiled programs run when XLA gets to them, later than the Python line that started them. They therefore use a duplicate of
the group, which has sequence numbers of its own; it is made when the first program with the group is compiled, by all
of its ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend import core
from jax.interpreters import mlir

from .. import _native
from .._errors import Unsupported
from . import eager
from .internals import CALLS, row_major, token_type

TARGET = "tutti_run"

call_p = core.Primitive("tutti")


def run(
    x: Any,
    call: Any,
    group: int,
    shape: tuple[int, ...],
    *,
    timeout: float | None = None,
    differentiated: bool = False,
    awaited: bool = False,
) -> jax.Array:
    """Runs the call on x, now or in the program that is being traced. `shape` is the result's, on this rank. `awaited`:
    the caller waits for the program, so that it may use the group itself."""
    return call_p.bind(
        x,
        call=call,
        group=group,
        shape=tuple(shape),
        timeout=timeout,
        differentiated=differentiated,
        awaited=awaited,
    )


_is_used = False


def is_used() -> bool:
    """Whether any program with calls has been compiled."""
    return _is_used


def _abstract_eval(x: Any, *, shape: tuple[int, ...], **_: Any) -> tuple[Any, set]:
    return jax.core.ShapedArray(shape, x.dtype), {CALLS}


def _run_now(
    x: Any, *, call: Any, group: int, shape: tuple[int, ...], timeout: float | None, differentiated: bool, **_: Any
) -> jax.Array:
    return eager.run(call, jax.numpy.asarray(x), _native.group_of(group), shape, timeout, differentiated)


def _lower(
    context: Any,
    x: Any,
    *,
    call: Any,
    group: int,
    shape: tuple[int, ...],
    timeout: float | None,
    differentiated: bool,
    awaited: bool,
) -> list[Any]:
    global _is_used
    _is_used = True
    result = context.avals_out[0]
    rule = jax.ffi.ffi_lowering(
        TARGET,
        has_side_effect=True,
        skip_ffi_layout_processing=True,
        operand_layouts=[row_major(context.avals_in[0].ndim), ()],
        result_layouts=[row_major(len(shape)), ()],
        result_types=[mlir.ir.RankedTensorType.get(shape, mlir.dtype_to_ir_type(result.dtype)), token_type()],
    )
    value, token = rule(
        context,
        x,
        context.tokens_in.get(CALLS),
        call=call.encode(),
        group=np.int64(group if awaited else _native.jax_prepare(_native.group_of(group), call)),
        timeout=np.float64(timeout or 0.0),
        differentiated=bool(differentiated),
    )
    context.set_tokens_out(context.tokens_in.update_tokens(mlir.TokenSet({CALLS: token})))
    return [value]


def _refuse_platform(context: Any, *_: Any, call: Any, **__: Any) -> Any:
    platforms = ", ".join(context.module_context.platforms)
    raise Unsupported(
        f"{call.verb} inside jit runs on JAX's CPU platform, and this program is compiled for {platforms}; call it "
        "outside jit, "
        "or jit for the CPU with jax.default_device(jax.devices('cpu')[0])"
    )


def _how_to_build() -> str:
    """What to do now that JAX is there: in a checkout its own script, else the package once more."""
    checkout = Path(_native.__file__).resolve().parents[2]
    if (checkout / "dev").is_file() and (checkout / "CMakePresets.json").is_file():
        return f"run {checkout / 'dev'} build, which finds it now"
    return "install Tutti once more, from its sources, where jaxlib can be imported"


def register() -> None:
    """Makes the primitive known to JAX."""
    if not hasattr(_native, "jax_handlers"):
        raise Unsupported(
            f"this build of Tutti has no handlers for XLA, because jaxlib was not there when it was built; {_how_to_build()}"
        )
    for name, handler in _native.jax_handlers().items():
        jax.ffi.register_ffi_target(name, handler, platform="cpu")
    call_p.def_effectful_abstract_eval(_abstract_eval)
    call_p.def_impl(_run_now)
    mlir.register_lowering(call_p, _lower, platform="cpu")
    mlir.register_lowering(call_p, _refuse_platform)
