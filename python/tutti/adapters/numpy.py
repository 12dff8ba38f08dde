# numpy.py: NumPy arrays, their subclasses and scalars, and Python's own numbers.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _native
from .._arrays.dtypes import OUR_NAMES, numpy_dtype
from .._arrays.flat import parts_of
from .._arrays.kinds import told
from .._calls.dispatch import tell_refusal
from .._calls.works import Works
from .._errors import InvalidArgument, Mismatch

overlaps = True  # several calls may be under way at once
packs_a_copy = True  # what pack() gives may be written to

_NUMBER_TYPES = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}


def _number(value: Any) -> np.ndarray:
    for cls, dtype in _NUMBER_TYPES.items():
        if isinstance(value, cls):
            try:
                return np.array(value, dtype)
            except OverflowError:
                raise InvalidArgument(
                    f"the number {value} does not fit into 64 bits; send it by an object verb"
                ) from None
    raise InvalidArgument(f"{type(value).__qualname__} is not a number")


def _array(x: Any) -> np.ndarray:
    """The plain array behind x, which shares its memory."""
    if type(x) is np.ndarray:
        return x
    if isinstance(x, np.ma.MaskedArray):
        raise InvalidArgument(
            "masked arrays would lose their mask; pass x.filled(value), or x.data and x.mask as a pair"
        )
    return np.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else _number(x)


def check(x: Any) -> None:
    """Raises for what cannot be sent although it is of NumPy's kind."""
    _array(x)


def _wrapped_like(x: Any) -> Callable[[np.ndarray], Any] | None:
    """How a result becomes of x's kind; None where it is already."""
    if type(x) is np.ndarray:
        return None
    if isinstance(x, np.ndarray):
        return x.__array_wrap__  # a subclass keeps its class
    if isinstance(x, np.generic):
        return lambda result: result[()]
    return lambda result: result.item() if result.ndim == 0 else result


def apply(call: Any, x: Any, out: Any, group: Any, async_op: bool, timeout: float | None) -> Any:
    """Runs the call on one array, scalar or number; None where only the root has one."""
    if x is None:
        return _learn(call, out, group, async_op, timeout)
    if call.structure and call.verb == "broadcast":
        return _broadcast_part(call, x, out, group, async_op, timeout)
    wrap = _wrapped_like(x)
    if wrap is None and (out is None or type(out) is np.ndarray):
        return _native.apply(call, x, out, group, async_op, timeout)
    if out is not None and not isinstance(out, np.ndarray):
        error = InvalidArgument(f"{call.verb}: out is a {type(out).__qualname__}; NumPy results go into a numpy.ndarray")
        tell_refusal(group, call, error)
        raise error
    plain_out = None if out is None else np.asarray(out)
    result = _native.apply(call, _array(x), plain_out, group, async_op, timeout)

    def finish(value: Any) -> Any:
        return out if out is not None else value if wrap is None else wrap(value)

    return Works([result], lambda results: finish(results[0]), call.verb) if async_op else finish(result)


def _learn(call: Any, out: np.ndarray | None, group: Any, async_op: bool, timeout: float | None) -> Any:
    """Off the root of a broadcast or scatter: shape and dtype come with the data."""

    def finish(array: _native.Array) -> np.ndarray:
        if out is None:
            return told(array, call.verb)
        if out.shape != array.shape or dtype_name(out) != array.dtype:
            raise Mismatch(
                f"{call.verb}: {array.dtype} of shape {array.shape} came, but out is {out.dtype} of {out.shape}"
            )
        out[...] = array.numpy()
        return out

    if async_op:
        return group.start_sized(call, None, timeout=timeout, finish=finish)
    return finish(group.run_sized(call, None, timeout=timeout))


def _broadcast_part(call: Any, x: Any, out: Any, group: Any, async_op: bool, timeout: float | None) -> Any:
    """A leaf of a tree, which every rank has: its shape need not be sent."""
    array, wrap = _array(x), _wrapped_like(x)
    result = np.empty(array.shape, array.dtype) if out is None else np.asarray(out)

    def finish(value: Any) -> Any:
        return out if out is not None else value if wrap is None else wrap(value)

    if async_op:
        return group.start(call, array, result, timeout=timeout, result=result, finish=finish)
    group.run(call, array, result, timeout=timeout)
    return finish(result)


def pack(leaves: list) -> np.ndarray:
    """Arrays of one dtype end to end."""
    return np.concatenate([_array(leaf).reshape(-1) for leaf in leaves])


def unpack(flat: np.ndarray, leaves: list) -> list:
    """The parts of `flat`, shaped and typed as the leaves."""
    parts = parts_of(flat, map(np.shape, leaves))
    wraps = map(_wrapped_like, leaves)
    return [part if wrap is None else wrap(part) for part, wrap in zip(parts, wraps, strict=True)]


def unpack_into(flat: np.ndarray, outs: list[np.ndarray]) -> None:
    """The parts of `flat` copied into the caller's arrays."""
    for out, part in zip(outs, parts_of(flat, [out.shape for out in outs]), strict=True):
        out[...] = part


def is_writable(x: Any) -> bool:
    """Whether a result can go there."""
    return isinstance(x, np.ndarray) and x.flags.writeable


def memory(x: Any, write: bool) -> np.ndarray:
    """What the core reads from or writes to."""
    if write and not is_writable(x):
        raise InvalidArgument(f"a {type(x).__qualname__} cannot be written to; pass a writable numpy.ndarray")
    return _array(x)


def dtype_name(x: Any) -> str:
    """Tutti's name of the elements' type."""
    name = x.dtype.name if hasattr(x, "dtype") else _number(x).dtype.name
    return OUR_NAMES.get(name, name)


def shape_of(x: Any) -> tuple[int, ...]:
    return np.shape(x)


def from_array(array: _native.Array, like: Any) -> np.ndarray:
    """Native memory as a NumPy array, without a copy; as a scalar or number where `like` is one."""
    wrap = None if like is None else _wrapped_like(like)
    return array.numpy() if wrap is None else wrap(array.numpy())


def empty(shape: tuple[int, ...], dtype: str, group: Any) -> np.ndarray:
    """An uninitialised array in memory that this host's ranks reach without a copy."""
    kind = numpy_dtype(dtype)
    memory = group.memory(math.prod(shape) * kind.itemsize)
    return memory.numpy().view(kind).reshape(shape)
