# operations.py: the few array operations that parallel layers need, for each framework.
# SPDX-License-Identifier: Apache-2.0
"""A layer that is split over ranks is the same formula in NumPy, PyTorch, JAX and TensorFlow. What differs is how each
of them slices, multiplies and, above all, how it is told that a function has a gradient of our choosing:

    custom_vjp(x, forward, backward)    y = forward(x); the gradient of x is backward(gradient of y)

Each framework has a class with these; array_ops_of() finds it by the array."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from .. import adapters
from .._errors import InvalidArgument

Function = Callable[[Any], Any]
Axes = int | tuple[int, ...] | None


class NumpyOps:
    """NumPy has no gradients: the caller uses the `backward` of each function."""

    @property
    def np(self) -> Any:
        """The module with NumPy's functions: of NumPy, and of those that have the same ones."""
        import numpy

        return numpy

    def custom_vjp(self, x: Any, forward: Function, backward: Function) -> Any:
        return forward(x)

    def slice(self, x: Any, axis: int, begin: int, length: int) -> Any:
        return x[(slice(None),) * (axis % len(x.shape)) + (slice(begin, begin + length),)]

    def concat(self, parts: list, axis: int) -> Any:
        return self.np.concatenate(parts, axis)

    def copy(self, x: Any) -> Any:
        return x.copy()

    def detach(self, x: Any) -> Any:
        return x

    def linear(self, x: Any, weight: Any) -> Any:
        return x @ weight.T

    def rows(self, table: Any, indices: Any) -> Any:
        return table[indices]

    def where(self, mask: Any, x: Any, otherwise: float) -> Any:
        return self.np.where(mask, x, self.np.asarray(otherwise, x.dtype))

    def clip(self, x: Any, lowest: int, highest: int) -> Any:
        return x.clip(lowest, highest)

    def exp(self, x: Any) -> Any:
        return self.np.exp(x)

    def log(self, x: Any) -> Any:
        return self.np.log(x)

    def largest(self, x: Any) -> Any:
        """Over the last axis, which may be empty: then what is less than all."""
        return x.max(-1, initial=-self.np.inf)

    def sum(self, x: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
        return x.sum(axis, dtype=x.dtype, keepdims=keepdims)

    def pick(self, x: Any, indices: Any) -> Any:
        """One element per row, along the last axis."""
        return self.np.take_along_axis(x, indices[..., None], -1)[..., 0]

    def cast(self, x: Any, like: Any) -> Any:
        """The elements as those of `like`."""
        return x.astype(like.dtype)

    def precise(self, x: Any) -> Any:
        """Floats, those of 16 bits in float32: what can be added up."""
        return x.astype("float32") if x.dtype.itemsize == 2 else x

    def length_of(self, x: Any, axes: tuple[int, ...]) -> Any:
        """The number of elements along axes, as an array with elements like those of x."""
        return self.np.asarray(math.prod(x.shape[axis] for axis in axes), x.dtype)

    def is_floating(self, x: Any) -> bool:
        return adapters.get("numpy").dtype_name(x).startswith(("float", "bfloat", "complex"))

    def weighted(self, x: Any, weight: Any, total: Any) -> Any:
        """x × weight ÷ total, and 0 for a weight of 0 even where x is NaN, as the mean over no samples is."""
        np = self.np
        return np.zeros_like(x) if weight == 0 else np.asarray(x * np.asarray(weight / total, x.dtype), x.dtype)

    def scalar(self, value: Any) -> Any:
        """A number as an array that can be summed over ranks, as exact as the framework has it."""
        return self.np.asarray(value, self.np.float64)


class TorchOps(NumpyOps):
    @property
    def torch(self) -> Any:
        import torch

        return torch

    def custom_vjp(self, x: Any, forward: Function, backward: Function) -> Any:
        from ..torch.tensor_parallel import custom_vjp

        return custom_vjp(x, forward, backward)

    def concat(self, parts: list, axis: int) -> Any:
        return self.torch.cat(parts, axis)

    def copy(self, x: Any) -> Any:
        return x.clone()

    def detach(self, x: Any) -> Any:
        return x.detach()

    def linear(self, x: Any, weight: Any) -> Any:
        return self.torch.nn.functional.linear(x, weight)

    def rows(self, table: Any, indices: Any) -> Any:
        return self.torch.nn.functional.embedding(indices, table)

    def where(self, mask: Any, x: Any, otherwise: float) -> Any:
        return self.torch.where(mask, x, self.torch.as_tensor(otherwise, dtype=x.dtype, device=x.device))

    def exp(self, x: Any) -> Any:
        return x.exp()

    def log(self, x: Any) -> Any:
        return x.log()

    def largest(self, x: Any) -> Any:
        return x.amax(-1) if x.shape[-1] else x.new_full(x.shape[:-1], float("-inf"))

    def sum(self, x: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
        return x.sum() if axis is None else x.sum(axis, keepdim=keepdims)

    def pick(self, x: Any, indices: Any) -> Any:
        return x.gather(-1, indices.long()[..., None])[..., 0]

    def cast(self, x: Any, like: Any) -> Any:
        return x.to(like.dtype)

    def precise(self, x: Any) -> Any:
        return x.float() if x.dtype.itemsize == 2 else x

    def length_of(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.new_tensor(math.prod(x.shape[axis] for axis in axes))

    def is_floating(self, x: Any) -> bool:
        return x.is_floating_point() or x.is_complex()

    def weighted(self, x: Any, weight: Any, total: Any) -> Any:
        return self.torch.zeros_like(x) if weight == 0 else x * float(weight / total)

    def scalar(self, value: Any) -> Any:
        return self.torch.as_tensor(value, dtype=self.torch.float64)


class JaxOps(NumpyOps):
    @property
    def np(self) -> Any:
        import jax.numpy

        return jax.numpy

    def custom_vjp(self, x: Any, forward: Function, backward: Function) -> Any:
        from ..jax.training import custom_vjp

        return custom_vjp(x, forward, backward)

    def copy(self, x: Any) -> Any:
        return x + 0 if x.dtype != bool else x

    def detach(self, x: Any) -> Any:
        import jax

        return jax.lax.stop_gradient(x)

    def is_floating(self, x: Any) -> bool:
        return self.np.issubdtype(x.dtype, self.np.inexact)

    def weighted(self, x: Any, weight: Any, total: Any) -> Any:
        return self.np.where(weight > 0, x * (weight / total).astype(x.dtype), self.np.zeros((), x.dtype))

    def scalar(self, value: Any) -> Any:
        import jax

        return self.np.asarray(value, self.np.float64 if jax.config.jax_enable_x64 else self.np.float32)


class TensorflowOps(NumpyOps):
    def custom_vjp(self, x: Any, forward: Function, backward: Function) -> Any:
        from ..tensorflow.training import custom_vjp

        return custom_vjp(x, forward, backward)

    @property
    def tf(self) -> Any:
        import tensorflow

        return tensorflow

    def concat(self, parts: list, axis: int) -> Any:
        return self.tf.concat(parts, axis)

    def copy(self, x: Any) -> Any:
        return self.tf.identity(x)

    def detach(self, x: Any) -> Any:
        return self.tf.stop_gradient(x)

    def linear(self, x: Any, weight: Any) -> Any:
        return self.tf.tensordot(x, weight, [[-1], [1]])

    def rows(self, table: Any, indices: Any) -> Any:
        return self.tf.gather(table, indices)

    def where(self, mask: Any, x: Any, otherwise: float) -> Any:
        return self.tf.where(mask, x, self.tf.cast(otherwise, x.dtype))

    def clip(self, x: Any, lowest: int, highest: int) -> Any:
        return self.tf.clip_by_value(x, lowest, highest)

    def exp(self, x: Any) -> Any:
        return self.tf.exp(x)

    def log(self, x: Any) -> Any:
        return self.tf.math.log(x)

    def largest(self, x: Any) -> Any:
        return self.tf.reduce_max(x, -1)

    def sum(self, x: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
        return self.tf.reduce_sum(x, axis, keepdims)

    def pick(self, x: Any, indices: Any) -> Any:
        return self.tf.gather(x, indices, batch_dims=len(x.shape) - 1, axis=-1)

    def cast(self, x: Any, like: Any) -> Any:
        return self.tf.cast(x, like.dtype)

    def precise(self, x: Any) -> Any:
        x = self.tf.convert_to_tensor(x)
        return self.tf.cast(x, self.tf.float32) if x.dtype.size == 2 else x

    def length_of(self, x: Any, axes: tuple[int, ...]) -> Any:
        lengths = self.tf.shape(x)  # inside tf.function a length may not be known before it runs
        return self.tf.cast(self.tf.reduce_prod(self.tf.gather(lengths, axes)), x.dtype)

    def is_floating(self, x: Any) -> bool:
        return x.dtype.is_floating or x.dtype.is_complex

    def weighted(self, x: Any, weight: Any, total: Any) -> Any:
        tf = self.tf
        x = tf.convert_to_tensor(x)
        return tf.where(weight > 0, x * tf.cast(weight / total, x.dtype), tf.zeros((), x.dtype))

    def scalar(self, value: Any) -> Any:
        return self.tf.cast(value, self.tf.float64)


_OPS = {"numpy": NumpyOps, "torch": TorchOps, "jax": JaxOps, "tensorflow": TensorflowOps}


@functools.cache
def array_ops(kind: str) -> NumpyOps:
    return _OPS[kind]()


def array_ops_of(x: Any, what: str) -> Any:
    """The operations of the framework that an array belongs to."""
    kind = adapters.kind_of(x)
    if kind not in _OPS:
        if kind == "dlpack":
            raise InvalidArgument(f"{what}: convert {type(x).__name__} to NumPy, PyTorch, JAX or TensorFlow first")
        raise adapters.refuse(x, verb=what)
    return array_ops(kind)
