# _inputs.py: what callers pass as a tensor, made one; what cannot be one is refused by name.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
import warnings
from typing import Any

import tensorflow as tf

from .._errors import InvalidArgument, Unsupported
from ._memory import dtype_name


def tensor_from(x: Any, verb: str) -> tf.Tensor:
    """x as a dense tensor: variables are read (under a tape: watched), tf.IndexedSlices made dense."""
    if isinstance(x, tf.IndexedSlices):
        return _dense(x, verb)
    if isinstance(x, (tf.RaggedTensor, tf.SparseTensor)):
        parts = "x.values and x.row_splits" if isinstance(x, tf.RaggedTensor) else "x.indices and x.values"
        dense = "x.to_tensor()" if isinstance(x, tf.RaggedTensor) else "tf.sparse.to_dense(x)"
        raise InvalidArgument(
            f"{verb}: a {type(x).__name__} has no single block of memory; pass {dense}, or {parts} one by one"
            " (uneven=True)"
        )
    if isinstance(x, tf.Tensor) and not tf.is_symbolic_tensor(x):
        tensor = x
    else:
        tensor = _converted(x, verb)
    dtype_name(tensor.dtype)
    return tensor


def _converted(x: Any, verb: str) -> tf.Tensor:
    if tf.is_symbolic_tensor(x):
        if tf.executing_eagerly():
            raise InvalidArgument(
                f"{verb}: {x.name} belongs to a tf.function whose tracing has ended; return it from the function"
                " instead"
            )
        return x
    try:
        return tf.convert_to_tensor(x)
    except (TypeError, ValueError, NotImplementedError) as error:
        kind = f"{type(x).__module__}.{type(x).__qualname__}"
        raise InvalidArgument(f"{verb}: {kind} cannot be made a dense tensor: {error}") from error


def _dense(slices: tf.IndexedSlices, verb: str) -> tf.Tensor:
    if slices.dense_shape is None:
        raise InvalidArgument(
            f"{verb}: tf.IndexedSlices without dense_shape cannot be made dense; pass "
            "tf.IndexedSlices(values, indices, dense_shape=…) or a dense tensor"
        )
    shape = tf.get_static_value(slices.dense_shape)
    size = "of unknown size" if shape is None else f"of {math.prod(map(int, shape)) * slices.dtype.size} bytes"
    warnings.warn(
        f"{verb}: tf.IndexedSlices were made a dense tensor {size}; to send only the rows that are there, "
        "all_gather x.values and x.indices with uneven=True",
        stacklevel=3,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TensorFlow's own words about the same thing
        return tf.convert_to_tensor(slices)


def refuse_out(out: Any, verb: str) -> None:
    if out is not None:
        raise InvalidArgument(
            f"{verb}: out= is not for TensorFlow, whose tensors do not change; take the result instead"
        )


def refuse_async(verb: str, why: str) -> Unsupported:
    return Unsupported(f"{verb}: async_op=True {why}; call it without, or outside")
