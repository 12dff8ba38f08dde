# _sum.py: mpi4jax's sum over the ranks, as it differentiates there.
# SPDX-License-Identifier: Apache-2.0
"""All ranks have the same loss, and it counts once: the sum is linear, its transpose leaves a cotangent as it is, and the transpose of
that is the sum again. (tutti.all_reduce differentiates the sum of all ranks' losses.)"""
from __future__ import annotations

from typing import Any

import jax
from jax.extend import core
from jax.interpreters import ad, batching, mlir

from ... import _native
from ..._calls import verbs
from ...jax.internals import CALLS

_sum_p, _keep_p = core.Primitive("tutti_mpi4jax_sum"), core.Primitive("tutti_mpi4jax_keep")


def sum_over(x: Any, group: _native.Group) -> Any:
    return _sum_p.bind(x, group=group.id)


def _run(x: Any, *, group: int) -> Any:
    return verbs.all_reduce(x, group=_native.group_of(group))


def _like(x: Any, **_: Any) -> Any:
    return jax.core.ShapedArray(x.shape, x.dtype)


def _transposed_by(other: core.Primitive) -> Any:
    return lambda cotangent, x, *, group: [other.bind(ad.instantiate_zeros(cotangent), group=group)]


def _batched(primitive: core.Primitive) -> Any:
    return lambda arrays, axes, *, group: (primitive.bind(arrays[0], group=group), axes[0])


_sum_p.def_impl(_run)
_sum_p.def_effectful_abstract_eval(lambda x, **_: (_like(x), {CALLS}))
mlir.register_lowering(_sum_p, mlir.lower_fun(_run, multiple_results=False))
_keep_p.def_impl(lambda x, **_: x)
_keep_p.def_abstract_eval(_like)
mlir.register_lowering(_keep_p, lambda context, x, **_: [x])
for _primitive, _other in ((_sum_p, _keep_p), (_keep_p, _sum_p)):
    ad.deflinear2(_primitive, _transposed_by(_other))
    batching.primitive_batchers[_primitive] = _batched(_primitive)
