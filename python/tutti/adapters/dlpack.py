# dlpack.py: arrays of any other library with DLPack or the buffer protocol.
# SPDX-License-Identifier: Apache-2.0
"""They are seen as NumPy arrays over the same memory, and results are given back as their own kind: by the from_dlpack
of the library they come from, as array.array, bytearray or memoryview, or else as a tutti.Array, which speaks both
protocols."""

from __future__ import annotations

import array
import sys
from typing import Any

import numpy as np

from .. import _native
from .._calls.works import Works
from .._errors import InvalidArgument, Unsupported
from . import gpu_arrays
from . import numpy as plain

overlaps = True
packs_a_copy = True

_CPU_DEVICES = (1, 3)  # DLPack's numbers: memory of the CPU, and such memory pinned for CUDA
_DEVICE_NAMES = {
    2: "a CUDA device",
    4: "an OpenCL device",
    7: "a Vulkan device",
    8: "a Metal device",
    10: "a ROCm device",
}


def _check_device(x: Any) -> None:
    device, index = x.__dlpack_device__()
    if int(device) not in _CPU_DEVICES:
        name = _DEVICE_NAMES.get(int(device), f"device type {int(device)}")
        raise Unsupported(
            f"a {type(x).__qualname__} lies on {name} ({int(index)}); "
            "calls move arrays of the CPU, and those of CUDA devices that have __cuda_array_interface__: copy it there first"
        )


def _view(x: Any) -> np.ndarray:
    """The same memory as a NumPy array."""
    if isinstance(x, np.ndarray):  # packed by us
        return x
    if isinstance(x, _native.Array):
        return x.numpy()
    if not hasattr(type(x), "__dlpack__"):
        return np.asarray(memoryview(x))
    _check_device(x)
    try:
        return np.from_dlpack(x)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise InvalidArgument(f"a {type(x).__qualname__} could not be read through DLPack: {error}") from error


def check(x: Any) -> None:
    """Raises for arrays that nothing here reaches."""
    if not gpu_arrays.is_on_gpu(x):
        _view(x)


def _own_kind(result: np.ndarray, like: Any) -> Any:
    if isinstance(like, np.ndarray):
        return result
    if isinstance(like, array.array) and result.ndim == 1:
        return array.array(like.typecode, result.tobytes())
    if isinstance(like, bytearray) and result.ndim == 1:
        return bytearray(result)
    if not hasattr(type(like), "__dlpack__"):
        return memoryview(result)
    if isinstance(like, _native.Array):
        return _as_native(result)
    namespace = like.__array_namespace__() if hasattr(like, "__array_namespace__") else None
    library = namespace or sys.modules.get(type(like).__module__.partition(".")[0])
    read = getattr(library, "from_dlpack", None)
    return _as_native(result) if read is None else read(result)


def _as_native(result: np.ndarray) -> _native.Array:
    result = np.asarray(result, order="C")
    return _native.Array(result.ctypes.data, plain.dtype_name(result), result.shape, None, False, result)


def apply(call: Any, x: Any, out: Any, group: Any, async_op: bool, timeout: float | None) -> Any:
    """Runs the call on one array."""
    if gpu_arrays.is_on_gpu(x):
        return gpu_arrays.apply(call, x, out, group, async_op, timeout)
    view = None if x is None else _view(x)
    result = plain.apply(call, view, None if out is None else _view(out), group, async_op, timeout)
    if async_op:
        return Works([result], lambda results: out if out is not None else _own_kind(results[0], x), call.verb)
    return out if out is not None else _own_kind(result, x)


def pack(leaves: list) -> Any:
    if gpu_arrays.is_on_gpu(leaves[0]):
        return gpu_arrays.pack(leaves)
    return plain.pack([_view(leaf) for leaf in leaves])


def unpack(flat: Any, leaves: list) -> list:
    if gpu_arrays.is_on_gpu(flat):
        return gpu_arrays.unpack(flat, leaves)
    views = plain.unpack(_view(flat), [_view(leaf) for leaf in leaves])
    return [_own_kind(view.copy(), leaf) for view, leaf in zip(views, leaves, strict=True)]


def unpack_into(flat: Any, outs: list) -> None:
    plain.unpack_into(_view(flat), [_view(out) for out in outs])


def is_writable(x: Any) -> bool:
    return plain.is_writable(_view(x))


def memory(x: Any, write: bool) -> np.ndarray:
    """What the core reads from or writes to."""
    if gpu_arrays.is_on_gpu(x):
        return gpu_arrays.message_memory(x, write)
    return plain.memory(_view(x), write)


def dtype_name(x: Any) -> str:
    return plain.dtype_name(x if gpu_arrays.is_on_gpu(x) else _view(x))


def shape_of(x: Any) -> tuple[int, ...]:
    return tuple(x.shape) if gpu_arrays.is_on_gpu(x) else _view(x).shape


def from_array(array_: _native.Array, like: Any) -> Any:
    """Native memory as an array of like's kind; on a GPU if `like` is on one."""
    if gpu_arrays.is_on_gpu(like):
        return gpu_arrays.from_host(array_.numpy(), like)
    return _own_kind(array_.numpy(), like)


def empty(shape: tuple[int, ...], dtype: str, group: Any) -> Any:
    raise Unsupported(
        "empty: memory that local peers reach is given as NumPy or torch arrays; numpy.from_dlpack leads further"
    )
