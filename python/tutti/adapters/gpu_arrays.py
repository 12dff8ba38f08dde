# gpu_arrays.py: arrays of other libraries on GPUs: CuPy's, Numba's, and what has __cuda_array_interface__.
# SPDX-License-Identifier: Apache-2.0
"""They are read and written where they lie. A call begins behind what the current stream has (CuPy) or the stream that the
interface names, and is over when the GPU has written its result."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .. import _native
from .._arrays.flat import parts_of
from .._calls.dispatch import with_sizes
from .._errors import InvalidArgument, Unsupported
from . import numpy as plain


def is_on_gpu(x: Any) -> bool:
    return hasattr(type(x), "__cuda_array_interface__")


def array_of(x: Any) -> _native.Array:
    """The memory of an array on a GPU as the core sees it."""
    seen = x.__cuda_array_interface__
    if seen.get("mask") is not None:
        raise Unsupported(f"a masked {type(x).__qualname__} is not one array; pass its data and its mask")
    kind = np.dtype(seen["typestr"])
    pointer, read_only = seen["data"]
    strides = seen.get("strides")
    steps = None if strides is None else [step // kind.itemsize for step in strides]
    index = _device_of(x)
    if pointer:
        _native.note_stream(pointer, index, _stream_of(x, seen))
    return _native.Array(pointer or 0, kind.name, list(seen["shape"]), steps, bool(read_only), x, index)


def _device_of(x: Any) -> int:
    device = getattr(x, "device", None)
    index = getattr(device, "id", None)
    if index is None and hasattr(x, "__dlpack_device__"):
        index = x.__dlpack_device__()[1]
    return int(index or 0)


def _stream_of(x: Any, seen: dict) -> int:
    library = _library(x)
    if library is not None and library.__name__ == "cupy":
        return library.cuda.get_current_stream().ptr
    stream = seen.get("stream")  # 1 and 2 are the default streams, by the numbers that the driver takes, too
    return 0 if stream is None else int(stream)


def _library(x: Any) -> Any:
    return sys.modules.get(type(x).__module__.partition(".")[0])


def new_like(x: Any, shape: tuple[int, ...]) -> Any:
    """An uninitialised array of x's library."""
    library = _library(x)
    name = getattr(library, "__name__", "")
    if name == "cupy":
        return library.empty(shape, x.dtype)
    if name == "numba":
        return library.cuda.device_array(shape, x.dtype)
    raise Unsupported(f"no {type(x).__qualname__} can be made for the result; give one by out=")


def apply(call: Any, x: Any, out: Any, group: Any, async_op: bool, timeout: float | None) -> Any:
    """Runs the call on one array."""
    if call.verb == "sendrecv":
        return _through_host(call, x, out, group, async_op, timeout)
    if call.learns_sizes:
        call = with_sizes(call, x, group)
    if out is not None:
        result = out
    elif call.keeps_shape:
        result = new_like(x, tuple(x.shape))
    else:
        result = new_like(x, tuple(call.output_shape(tuple(x.shape), group.rank, group.size)))
    if not is_on_gpu(result):
        raise InvalidArgument(f"{call.verb}: the array is on a GPU, but out is a {type(result).__qualname__}, which is not")
    source = None if call.root_gives and group.rank != call.root else array_of(x)
    if async_op:
        return group.start(
            call, source, array_of(result), timeout=timeout, result=result, finish=lambda _: result, keep=(x, result)
        )
    group.run(call, source, array_of(result), timeout=timeout)
    return result


def _through_host(call: Any, x: Any, out: Any, group: Any, async_op: bool, timeout: float | None) -> Any:
    if async_op or out is not None:
        raise Unsupported(f"{call.verb}: an array on a GPU is sent by way of the host, without async_op and out=")
    return from_host(plain.apply(call, on_host(x), None, group, False, timeout), x)


def on_host(x: Any) -> np.ndarray:
    """A copy in the CPU's memory, where messages move."""
    for name in ("get", "copy_to_host"):  # CuPy's, Numba's
        if hasattr(x, name):
            return getattr(x, name)()
    raise Unsupported(f"a {type(x).__qualname__} cannot be copied to the CPU's memory here, where messages move; copy it there first")


def from_host(array: np.ndarray, like: Any) -> Any:
    """A copy on the current GPU, of like's library."""
    library = _library(like)
    name = getattr(library, "__name__", "")
    if name == "cupy":
        return library.asarray(array)
    if name == "numba":
        return library.cuda.to_device(array)
    raise Unsupported(f"no {type(like).__qualname__} can be made of what came; receive it as an array of the CPU")


def message_memory(x: Any, write: bool) -> np.ndarray:
    """What a message is read from."""
    if write:
        raise Unsupported(f"recv: out= is a {type(x).__qualname__} on a GPU; use like= and take the result")
    return on_host(x)


def pack(leaves: list) -> Any:
    library = _library(leaves[0])
    if getattr(library, "__name__", "") != "cupy":
        raise Unsupported("trees of arrays on a GPU are served for torch and CuPy; pass the arrays one by one")
    return library.concatenate([leaf.ravel() for leaf in leaves])


def unpack(flat: Any, leaves: list) -> list:
    return parts_of(flat, [leaf.shape for leaf in leaves])
