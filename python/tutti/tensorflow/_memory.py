# _memory.py: TensorFlow's tensors as NumPy arrays and back, over the same memory.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from .._arrays.dtypes import NAMES, OUR_NAMES
from .._arrays.flat import ALIGNMENT, new_aligned
from .._errors import InvalidArgument, Unsupported

_names: dict[Any, str] = {}


def dtype_name(dtype: tf.DType) -> str:
    """Tutti's name of a dtype; raises InvalidArgument for elements that are not numbers or bool."""
    name = _names.get(dtype)
    if name is None:
        name = OUR_NAMES.get(dtype.name, dtype.name)
        if name not in NAMES:
            hint = "texts go by the object verbs" if dtype == tf.string else "convert it with tf.cast first"
            raise InvalidArgument(
                f"a tensor of dtype {dtype.name} cannot be sent: its elements are not numbers or bool; {hint}"
            )
        _names[dtype] = name
    return name


def array_of(tensor: tf.Tensor) -> np.ndarray:
    """The eager tensor's own memory. Tensors are immutable: it must not be written to."""
    if "CPU" not in tensor.device:
        raise Unsupported(
            f"the tensor lies on {tensor.device}; this build moves tensors in the CPU's memory: "
            "copy it there first (with tf.device('CPU:0'): x = tf.identity(x))"
        )
    return np.asarray(tensor)


def tensor_of(array: np.ndarray) -> tf.Tensor:
    """A tensor over the array's memory, which belongs to the tensor from now on: nobody may write to it again."""
    if array.ctypes.data % ALIGNMENT or not array.flags.c_contiguous:
        aligned = new_aligned(array.shape, array.dtype)
        aligned[...] = array
        array = aligned
    if array.dtype.isbuiltin == 1 and array.dtype.isnative:
        return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    if array.dtype.name == "bfloat16":  # NumPy does not export what it learned from ml_dtypes
        return tf.bitcast(tf.experimental.dlpack.from_dlpack(array.view(np.uint16).__dlpack__()), tf.bfloat16)
    return tf.constant(array)  # float8 cannot be bitcast
