# adapters/tensorflow.py: TensorFlow's tensors and variables, eager and symbolic.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import tensorflow as tf

from .. import _native
from .._errors import Unsupported
from ..tensorflow import _memory, _operation, _order
from ..tensorflow._eager import start
from ..tensorflow._inputs import refuse_async, refuse_out, tensor_from

overlaps = True  # several calls may be under way at once


def apply(call: Any, x: Any, out: Any, group: Any, async_op: bool, timeout: float | None) -> Any:
    """Runs the call on one tensor, variable or tf.IndexedSlices. Differentiable."""
    refuse_out(out, call.verb)
    tensor = tensor_from(x, call.verb)
    if not async_op:
        return _operation.operate(call, tensor, group, timeout, tells=True)
    if not tf.executing_eagerly():
        raise refuse_async(call.verb, "has no meaning inside tf.function, which decides itself when operations run")
    if _order.is_watched(tensor):
        raise refuse_async(call.verb, "cannot be recorded by a tf.GradientTape")
    return start(call, tensor, group, timeout)


def pack(leaves: list) -> tf.Tensor:
    """Tensors of one dtype end to end."""
    return tf.concat([tf.reshape(tensor_from(leaf, "pack"), [-1]) for leaf in leaves], axis=0)


def unpack(flat: tf.Tensor, leaves: list) -> list:
    """The parts of `flat`, shaped as the leaves."""
    shapes = [leaf.shape if leaf.shape.is_fully_defined() else tf.shape(leaf) for leaf in leaves]
    parts = tf.split(flat, [tf.reduce_prod(shape) for shape in shapes])
    results = [tf.reshape(part, shape) for part, shape in zip(parts, shapes, strict=True)]
    for result, leaf in zip(results, leaves, strict=True):
        result.set_shape(leaf.shape)
    return results


def is_writable(x: Any) -> bool:
    """Tensors do not change."""
    return False


def dtype_name(x: Any) -> str:
    """Tutti's name of the elements' type."""
    return _memory.dtype_name(tf.as_dtype(x.dtype))


def shape_of(x: Any) -> tuple[int, ...]:
    return tuple(tf.TensorShape(x.shape))


def from_array(array: _native.Array, like: Any) -> tf.Tensor:
    """Native memory as a tensor, without a copy where it is aligned as TensorFlow needs it."""
    return _memory.tensor_of(array.numpy())


def tie(value: Any, results: list) -> tf.Tensor:
    """`value`, for whose gradient the results count as used: theirs is zero."""
    return _operation.tie(tf.convert_to_tensor(value), *(tf.convert_to_tensor(result) for result in results))


def empty(shape: tuple[int, ...], dtype: str, group: Any) -> Any:
    raise Unsupported("empty: TensorFlow's tensors do not change, so they cannot be filled; use like=numpy and tf.constant")
