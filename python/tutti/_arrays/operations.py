# operations.py: the few array operations that parallel layers need, for each framework.
# SPDX-License-Identifier: Apache-2.0
"""A layer that is split over ranks is the same formula in NumPy, PyTorch, JAX and TensorFlow. What differs is how each
of them slices, multiplies and, above all, how it is told that a function has a gradient of our choosing:

    custom_vjp(x, forward, backward)    y = forward(x); the gradient of x is backward(gradient of y)

Each framework has a class with these; array_ops_of() finds it by the array."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import adapters
from .._errors import InvalidArgument

Function = Callable[[Any], Any]


class NumpyOps:
    """NumPy has no gradients: the caller uses the `backward` of each function."""

    def custom_vjp(self, x: Any, forward: Function, backward: Function) -> Any:
        return forward(x)

    def slice(self, x: Any, axis: int, begin: int, length: int) -> Any:
        return x[(slice(None),) * (axis % len(x.shape)) + (slice(begin, begin + length),)]

    def concat(self, parts: list, axis: int) -> Any:
        import numpy as np

        return np.concatenate(parts, axis)

    def copy(self, x: Any) -> Any:
        return x.copy()

    def detach(self, x: Any) -> Any:
        return x

    def linear(self, x: Any, weight: Any) -> Any:
        return x @ weight.T

    def rows(self, table: Any, indices: Any) -> Any:
        return table[indices]

    def where(self, mask: Any, x: Any, otherwise: float) -> Any:
        import numpy as np

        return np.where(mask, x, np.asarray(otherwise, x.dtype))

    def clip(self, x: Any, lowest: int, highest: int) -> Any:
        return x.clip(lowest, highest)

    def exp(self, x: Any) -> Any:
        import numpy as np

        return np.exp(x)

    def log(self, x: Any) -> Any:
        import numpy as np

        return np.log(x)

    def largest(self, x: Any) -> Any:
        """Over the last axis, which may be empty: then what is less than all."""
        import numpy as np

        return x.max(-1, initial=-np.inf)

    def sum(self, x: Any, axis: int | None = None) -> Any:
        return x.sum(axis, dtype=x.dtype)

    def pick(self, x: Any, indices: Any) -> Any:
        """One element per row, along the last axis."""
        import numpy as np

        return np.take_along_axis(x, indices[..., None], -1)[..., 0]

    def cast(self, mask: Any, like: Any) -> Any:
        return mask.astype(like.dtype)

    def is_floating(self, x: Any) -> bool:
        return adapters.get("numpy").dtype_name(x).startswith(("float", "bfloat", "complex"))

    def weighted(self, x: Any, weight: Any, total: Any) -> Any:
        """x × weight ÷ total, and 0 for a weight of 0 even where x is NaN, as the mean over no samples is."""
        import numpy as np

        return np.zeros_like(x) if weight == 0 else np.asarray(x * np.asarray(weight / total, x.dtype), x.dtype)

    def scalar(self, value: Any) -> Any:
        """A number as an array that can be summed over ranks, as exact as the framework has it."""
        import numpy as np

        return np.asarray(value, np.float64)


class TorchOps(NumpyOps):
    def custom_vjp(self, x: Any, forward: Function, backward: Function) -> Any:
        from ..torch.tensor_parallel import custom_vjp

        return custom_vjp(x, forward, backward)

    def concat(self, parts: list, axis: int) -> Any:
        import torch

        return torch.cat(parts, axis)

    def copy(self, x: Any) -> Any:
        return x.clone()

    def detach(self, x: Any) -> Any:
        return x.detach()

    def linear(self, x: Any, weight: Any) -> Any:
        import torch

        return torch.nn.functional.linear(x, weight)

    def rows(self, table: Any, indices: Any) -> Any:
        import torch

        return torch.nn.functional.embedding(indices, table)

    def where(self, mask: Any, x: Any, otherwise: float) -> Any:
        import torch

        return torch.where(mask, x, torch.as_tensor(otherwise, dtype=x.dtype, device=x.device))

    def exp(self, x: Any) -> Any:
        return x.exp()

    def log(self, x: Any) -> Any:
        return x.log()

    def largest(self, x: Any) -> Any:
        return x.amax(-1) if x.shape[-1] else x.new_full(x.shape[:-1], float("-inf"))

    def sum(self, x: Any, axis: int | None = None) -> Any:
        return x.sum() if axis is None else x.sum(axis)

    def pick(self, x: Any, indices: Any) -> Any:
        return x.gather(-1, indices.long()[..., None])[..., 0]

    def cast(self, mask: Any, like: Any) -> Any:
        return mask.to(like.dtype)

    def is_floating(self, x: Any) -> bool:
        return x.is_floating_point() or x.is_complex()

    def weighted(self, x: Any, weight: Any, total: Any) -> Any:
        import torch

        return torch.zeros_like(x) if weight == 0 else x * float(weight / total)

    def scalar(self, value: Any) -> Any:
        import torch

        return torch.as_tensor(value, dtype=torch.float64)


class JaxOps(NumpyOps):
    def custom_vjp(self, x: Any, forward: Function, backward: Function) -> Any:
        from ..jax.training import custom_vjp

        return custom_vjp(x, forward, backward)

    def concat(self, parts: list, axis: int) -> Any:
        import jax.numpy as jnp

        return jnp.concatenate(parts, axis)

    def copy(self, x: Any) -> Any:
        return x + 0 if x.dtype != bool else x

    def detach(self, x: Any) -> Any:
        import jax

        return jax.lax.stop_gradient(x)

    def where(self, mask: Any, x: Any, otherwise: float) -> Any:
        import jax.numpy as jnp

        return jnp.where(mask, x, jnp.asarray(otherwise, x.dtype))

    def exp(self, x: Any) -> Any:
        import jax.numpy as jnp

        return jnp.exp(x)

    def log(self, x: Any) -> Any:
        import jax.numpy as jnp

        return jnp.log(x)

    def largest(self, x: Any) -> Any:
        import jax.numpy as jnp

        return jnp.max(x, -1, initial=-jnp.inf)

    def pick(self, x: Any, indices: Any) -> Any:
        import jax.numpy as jnp

        return jnp.take_along_axis(x, indices[..., None], -1)[..., 0]

    def is_floating(self, x: Any) -> bool:
        import jax.numpy as jnp

        return jnp.issubdtype(x.dtype, jnp.inexact)

    def weighted(self, x: Any, weight: Any, total: Any) -> Any:
        import jax.numpy as jnp

        return jnp.where(weight > 0, x * (weight / total).astype(x.dtype), jnp.zeros((), x.dtype))

    def scalar(self, value: Any) -> Any:
        import jax
        import jax.numpy as jnp

        return jnp.asarray(value, jnp.float64 if jax.config.jax_enable_x64 else jnp.float32)


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

    def sum(self, x: Any, axis: int | None = None) -> Any:
        return self.tf.reduce_sum(x, axis)

    def pick(self, x: Any, indices: Any) -> Any:
        return self.tf.gather(x, indices, batch_dims=len(x.shape) - 1, axis=-1)

    def cast(self, mask: Any, like: Any) -> Any:
        return self.tf.cast(mask, like.dtype)

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
