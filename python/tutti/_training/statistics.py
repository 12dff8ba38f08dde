# statistics.py: mean and variance over the batches of all ranks, in any framework, with gradients.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from .. import _native, adapters
from .._arrays.operations import array_ops_of
from .._errors import InvalidArgument

Batch = TypeVar("Batch")

_SUM = _native.Call("all_reduce")


def batch_statistics(
    x: Batch, axis: int | Sequence[int] = 0, *, group: _native.Group | None = None
) -> tuple[Batch, Batch]:
    """The mean and the (biased) variance of all ranks' batches along axes: what batch normalisation needs::

        mean, variance = tutti.batch_statistics(x, axis=(0, 1, 2))       # images, channels last
        y = (x - mean) / (variance + 1e-5) ** 0.5

    x: this rank's batch, of NumPy, PyTorch, JAX or TensorFlow; floating point, alike but for the lengths along `axis`.
    axis: the axes that are averaged over; they stay, with length 1, so that x - mean fits.
    group: the ranks whose batches count; the world unless given.

    Works inside jax.jit, tf.function and their gradients: with tutti.average(gradients) those are the gradients of the
    whole batch. float16 and bfloat16 are added up in float32. Raises InvalidArgument for integers and axes that x does
    not have. torch has the layer tutti.torch.SyncBatchNorm.

    Example::

        mean, variance = tutti.batch_statistics(np.full((2, 3), float(rank)))
        assert mean.shape == (1, 3) and np.allclose(mean, (size - 1) / 2)
    """
    return _statistics(x, axis, group)


def _statistics(x: Any, axis: Any, group: Any) -> tuple[Any, Any]:
    axes = _axes(x, axis)
    ops = array_ops_of(x, "batch_statistics")
    _check_floats(x)
    precise = ops.precise(x)
    own = [ops.sum(precise, axes, keepdims=True), ops.length_of(precise, axes)]
    total, count = _native.apply(_SUM, own, None, group, False, None)
    mean = total / count
    around = precise - mean
    variance = _native.apply(_SUM, ops.sum(around * around, axes, keepdims=True), None, group, False, None) / count
    return ops.cast(mean, x), ops.cast(variance, x)


def _check_floats(x: Any) -> None:
    name = adapters.adapter_of(x).dtype_name(x)
    if not name.startswith(("float", "bfloat")):
        raise InvalidArgument(f"batch_statistics: elements of type {name} have no mean among them; cast them")


def _axes(x: Any, axis: Any) -> tuple[int, ...]:
    if not hasattr(x, "shape"):
        raise adapters.refuse(x, verb="batch_statistics")
    count = len(x.shape)
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(not -count <= each < count for each in given):
        raise InvalidArgument(f"batch_statistics: axis={axis} is none of the {count} axes of the array")
    return tuple(sorted({each % count for each in given}))


batch_statistics.autograph_info__ = {}  # type: ignore[attr-defined]  # inside tf.function: to be called as it is
