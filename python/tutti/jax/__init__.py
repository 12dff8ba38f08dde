# __init__.py: the verbs inside jit, grad, vmap and scan.
# SPDX-License-Identifier: Apache-2.0
"""``tutti.all_reduce(x)`` and the other verbs take JAX arrays, inside and outside of ``jax.jit``::

    @jax.jit
    def step(params, batch):
        loss, gradients = jax.value_and_grad(loss_of)(params, batch)
        return tutti.all_reduce(loss, op="mean"), tutti.all_reduce(gradients, op="mean")

They differentiate (``grad``, ``vjp``, ``jvp``, ``linearize``), batch (``vmap``) and work inside ``scan``,
``while_loop``, ``cond``, ``checkpoint`` and inner ``jit``. Calls happen in the order of the program,
whether or not their results are used.

Every rank runs the same calls in the same order: a ``cond`` whose predicate differs between ranks must not contain one.
"""

from __future__ import annotations

import functools as _functools
import warnings as _warnings
from typing import TYPE_CHECKING, Any

import jax as _jax
import jax.numpy as _jnp
import numpy as _np

from .. import _native
from .._process import lifecycle
from .._process.later import names_later as _names_later
from . import internals as _internals
from . import primitive, rules
from .errors import install as _install_errors
from .errors import translated
from .internals import is_tracing

_TRAINING = dict.fromkeys(("training", "average_gradients", "value_and_grad", "zero"), "training")

__all__ = ["barrier", "is_tracing", "translated"]

if TYPE_CHECKING:
    from . import training as training
    from .training import average_gradients as average_gradients
    from .training import value_and_grad as value_and_grad
    from .training import zero as zero
else:
    __getattr__, __dir__ = _names_later(__name__, _TRAINING)

primitive.register()
rules.register()
_install_errors()


def barrier(group: Any = None, timeout: float | None = None) -> None:
    """Inside ``jit``: returns on no rank before all ranks have come here, in the order of the group's other calls. It
    is what ``tutti.barrier()`` becomes there."""
    group = _native.world() if group is None else group
    primitive.run(_jnp.zeros((0,), bool), _native.Call("barrier"), group.id, (0,), timeout=timeout)


@_functools.cache
def _last_program(device: Any) -> Any:
    return _jax.jit(lambda x: x + 1), _jax.device_put(_np.zeros((), _np.int32), device)


def _wait_for_calls() -> None:
    """Until the calls of all programs that this thread has started are over: a device runs a thread's programs in the
    order in which they were started, so the last one need only be a program, and over."""
    if not primitive.is_used():
        return
    for device in _jax.local_devices(backend="cpu"):
        program, x = _last_program(device)
        program(x).block_until_ready()


_internals.wait_for_calls_too(_wait_for_calls)


def _finish_programs() -> None:
    """Programs under way still need their groups. What went wrong in one that nobody waited for must not keep this
    process from leaving, and must not go unsaid."""
    try:
        _jax.effects_barrier()
        failure = _native.jax_unseen_failure()
    except _jax.errors.JaxRuntimeError as error:  # somebody else's effect
        failure = str(error)
    if failure:
        _warnings.warn(
            f"a compiled program whose result nobody looked at ended with: {failure}", RuntimeWarning, stacklevel=1
        )


lifecycle.before_finalize(_finish_programs)
