# statistics.py: mean and variance over the batches of all ranks, in any framework, with gradients.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from .. import _native, adapters
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
    sums = _sums(x)
    precise = sums.precise(x)
    total, count = _native.apply(_SUM, [sums.over(precise, axes), sums.count(precise, axes)], None, group, False, None)
    mean = total / count
    around = precise - mean
    variance = _native.apply(_SUM, sums.over(around * around, axes), None, group, False, None) / count
    return sums.like(mean, x), sums.like(variance, x)


def _axes(x: Any, axis: Any) -> tuple[int, ...]:
    if not hasattr(x, "shape"):
        raise adapters.refuse(x, verb="batch_statistics")
    count = len(x.shape)
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(not -count <= each < count for each in given):
        raise InvalidArgument(f"batch_statistics: axis={axis} is none of the {count} axes of the array")
    return tuple(sorted({each % count for each in given}))


class _NumpySums:
    """What differs between the frameworks."""

    def is_small(self, x: Any) -> bool:
        return str(x.dtype) in ("float16", "bfloat16")

    def precise(self, x: Any) -> Any:
        if not str(x.dtype).startswith(("float", "bfloat")):
            raise InvalidArgument(f"batch_statistics: elements of type {x.dtype} have no mean among them; cast them")
        return x.astype("float32") if self.is_small(x) else x

    def over(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.sum(axis=axes, keepdims=True)

    def count(self, x: Any, axes: tuple[int, ...]) -> Any:
        import numpy as np

        return np.asarray(math.prod(x.shape[axis] for axis in axes), x.dtype)

    def like(self, value: Any, x: Any) -> Any:
        return value.astype(x.dtype)


class _JaxSums(_NumpySums):
    def count(self, x: Any, axes: tuple[int, ...]) -> Any:
        import jax.numpy as jnp

        return jnp.asarray(math.prod(x.shape[axis] for axis in axes), x.dtype)


class _TorchSums(_NumpySums):
    def precise(self, x: Any) -> Any:
        if not x.is_floating_point():
            raise InvalidArgument(f"batch_statistics: elements of type {x.dtype} have no mean among them; cast them")
        return x.float() if x.dtype.itemsize == 2 else x

    def over(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.sum(axes, keepdim=True)

    def count(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.new_tensor(math.prod(x.shape[axis] for axis in axes))

    def like(self, value: Any, x: Any) -> Any:
        return value.to(x.dtype)


class _TensorflowSums(_NumpySums):
    def precise(self, x: Any) -> Any:
        import tensorflow as tf

        x = tf.convert_to_tensor(x)
        if not x.dtype.is_floating:
            raise InvalidArgument(f"batch_statistics: elements of type {x.dtype.name} have no mean among them; cast them")
        return tf.cast(x, tf.float32) if x.dtype.size == 2 else x

    def over(self, x: Any, axes: tuple[int, ...]) -> Any:
        import tensorflow as tf

        return tf.reduce_sum(x, axes, keepdims=True)

    def count(self, x: Any, axes: tuple[int, ...]) -> Any:
        import tensorflow as tf

        lengths = tf.shape(x)  # inside tf.function a length may not be known before it runs
        return tf.cast(tf.reduce_prod(tf.gather(lengths, axes)), x.dtype)

    def like(self, value: Any, x: Any) -> Any:
        import tensorflow as tf

        return tf.cast(value, x.dtype)


_SUMS = {"numpy": _NumpySums, "torch": _TorchSums, "jax": _JaxSums, "tensorflow": _TensorflowSums}


def _sums(x: Any) -> _NumpySums:
    kind = adapters.kind_of(x)
    if kind not in _SUMS:
        raise adapters.refuse(x, verb="batch_statistics")
    return _SUMS[kind]()


batch_statistics.autograph_info__ = {}  # type: ignore[attr-defined]  # inside tf.function: to be called as it is
