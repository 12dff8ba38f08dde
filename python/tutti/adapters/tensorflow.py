# tensorflow.py: the adapter for TensorFlow's tensors and variables, eager and symbolic.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from .. import _native
from .._errors import InvalidArgument, Unsupported
from ..tensorflow import _memory, _operation, _order
from ..tensorflow._eager import start
from ..tensorflow._inputs import refuse_async, refuse_out, tensor_from


def __getattr__(name: str) -> Any:
    if name == "overlaps":  # several calls may be under way at once, but not while something records or traces
        return tf.executing_eagerly() and not _order.anything_is_recorded()
    raise AttributeError(f"module {__name__} has no attribute {name}")


def _may_be_fused(tensors: list) -> bool:
    """Whether neither a tape nor a function records the call."""
    return tf.executing_eagerly() and not _order.anything_is_recorded()


def _views(tensors: list) -> list[np.ndarray]:
    return [_memory.array_of(tensor) for tensor in tensors]


def _tensors(results: list[np.ndarray], like: list) -> list:
    return [_memory.tensor_of(result) for result in results]


_native.serve_trees([type(tf.constant(0))], allows=_may_be_fused, views=_views, finish=_tensors)


@tf.autograph.experimental.do_not_convert
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


def is_traced(x: Any) -> bool:
    return not tf.executing_eagerly()


def dtype_name(x: Any) -> str:
    """Tutti's name of the elements' type."""
    return _memory.dtype_name(tf.as_dtype(x.dtype))


def shape_of(x: Any) -> tuple[int, ...]:
    return tuple(tf.TensorShape(x.shape))


def memory(x: Any, writable: bool) -> np.ndarray:
    """The tensor's own memory, for messages; those have no gradient and no place in a graph."""
    if writable:
        raise InvalidArgument(
            "recv: out= is not for TensorFlow, whose tensors do not change; use like= and take the result"
        )
    tensor = tensor_from(x, "send")
    if not tf.executing_eagerly():
        raise _no_message("send")
    if _order.is_watched(tensor):
        raise Unsupported(
            "send: a tf.GradientTape watches the tensor, but messages have no gradient; use sendrecv or permute, which"
            " have, or send tf.stop_gradient(x)"
        )
    return _memory.array_of(tensor)


def from_array(array: _native.Array, like: Any) -> tf.Tensor:
    """Native memory as a tensor, without a copy where it is aligned as TensorFlow needs it."""
    if not tf.executing_eagerly():
        raise _no_message("recv")
    return _memory.tensor_of(array.numpy())


def _no_message(verb: str) -> Unsupported:
    return Unsupported(
        f"{verb}: inside tf.function it would run once, while the function is traced; use sendrecv or permute, "
        "which are operations of the function"
    )


def tie(loss: Any, y: Any) -> tf.Tensor:
    """The loss, for whose gradient the tensors of the tree y count as used: theirs is zero."""
    return _operation.tie(tf.convert_to_tensor(loss), *(tf.convert_to_tensor(result) for result in tf.nest.flatten(y)))


def empty(shape: tuple[int, ...], dtype: str, group: Any) -> Any:
    raise Unsupported(
        "empty: TensorFlow's tensors do not change, so they cannot be filled; use like=numpy and tf.constant"
    )
