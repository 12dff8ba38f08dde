# empty.py: arrays in memory that the ranks of this host read without a copy.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import operator
from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeVar, overload

from numpy.typing import NDArray

from .. import _native, adapters
from .._calls.dispatch import group_or_world
from .._errors import InvalidArgument
from .dtypes import OUR_NAMES

Like = TypeVar("Like")
_KINDS = ("numpy", "torch", "jax", "tensorflow")


@overload
def empty(
    shape: int | Sequence[int], dtype: object = "float32", *, like: None = None, group: _native.Group | None = None
) -> NDArray[Any]: ...
@overload
def empty(
    shape: int | Sequence[int], dtype: object = "float32", *, like: ModuleType, group: _native.Group | None = None
) -> Any: ...
@overload
def empty(
    shape: int | Sequence[int], dtype: object = "float32", *, like: Like, group: _native.Group | None = None
) -> Like: ...
def empty(shape: Any, dtype: Any = "float32", *, like: Any = None, group: _native.Group | None = None) -> Any:
    """An array whose elements are not initialised, in memory that local peers reach: collectives on it copy nothing between.

    ``dtype`` is a name or any framework's own ("float32", ``np.float32``, ``torch.float32``). ``like`` says of which
    kind the array is: the module (``np``, ``torch``) or an array; NumPy if not given.

    Example::

        buffer = tutti.empty((1024,), "float32", like=np)
        buffer[:] = rank
        tutti.all_reduce(buffer, out=buffer)
    """
    adapter = adapters.get(_kind_like(like))
    return adapter.empty(_lengths(shape), dtype_name(dtype), group_or_world(group))


def _kind_like(like: Any) -> str:
    if like is None:
        return "numpy"
    kind = like.__name__.partition(".")[0] if isinstance(like, ModuleType) else adapters.kind_of(like)
    if kind not in _KINDS:
        raise InvalidArgument(f"empty: like={like!r} is neither the module numpy or torch nor one of their arrays")
    return kind


def _lengths(shape: Any) -> tuple[int, ...]:
    try:
        return (operator.index(shape),)  # also NumPy's integers
    except TypeError:
        pass
    try:
        return tuple(operator.index(length) for length in shape)
    except TypeError:
        raise InvalidArgument(f"empty: shape={shape!r} is neither a number nor a sequence of numbers") from None


def dtype_name(dtype: Any) -> str:
    """Tutti's name of an element type, given as a name, or as NumPy, PyTorch, JAX, TensorFlow or Python have it."""
    if dtype is None:
        raise InvalidArgument("empty: dtype=None is no element type; leave it out for float32")
    if isinstance(dtype, str):
        name = dtype
    elif type(dtype).__module__.partition(".")[0] == "torch":
        name = str(dtype).removeprefix("torch.")
    else:
        name = getattr(dtype, "name", None) or _numpy_name(dtype)
    return OUR_NAMES.get(name, name)


def _numpy_name(dtype: Any) -> str:
    import numpy as np

    try:
        return np.dtype(dtype).name
    except TypeError:
        raise InvalidArgument(f"empty: dtype={dtype!r} is no element type; pass a name such as 'float32'") from None
