# encoding.py: Python objects as bytes, by type, without pickle.
# SPDX-License-Identifier: Apache-2.0
"""Each value is one byte that says its type, and what that type needs; lengths and counts are eight bytes::

    N T F               None, True, False
    i  length, bytes    int, two's complement       f  8 bytes    float       c  16 bytes   complex
    s b y  length, …    str (UTF-8), bytes, bytearray
    l t S Z  count, …   list, tuple, set, frozenset                           d O  count, … dict, OrderedDict: key, value, …
    a g                 NumPy array, NumPy scalar: dtype, axes, shape, elements
    x  which, array     array of a framework        p  length, …  a pickle, if the caller allows it

decoding.py reads it, and trusts none of it.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import os
import pickle
import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import adapters
from .._arrays.dtypes import SMALL_FLOATS, numpy_dtype
from .._errors import InvalidArgument

DEPTH_MAX = 100
FRAMEWORKS = ("torch", "jax", "tensorflow")  # the number of each travels: add at the end only
# NumPy's own types whose elements are in the array, and the small floats of ml_dtypes. No objects, no records.
DTYPES = re.compile(
    r"[<>|](b1|[iu][1248]|f2|f4|f8|f16|c8|c16|c32|[US][1-9][0-9]{0,8}|[mM]8(\[[0-9]{0,9}[a-zA-Z]{1,7}\])?)"
    r"|bfloat16|float8_e4m3fn|float8_e5m2"
)


def encode(value: Any, name: str = "the object", allow_pickle: bool = False) -> list[bytes | memoryview]:
    """The pieces of the encoding, of which those of arrays are the arrays' own memory: join them at once. Raises InvalidArgument that names the place inside the object which has none."""
    encoder = _Encoder(allow_pickle)
    encoder.put(value, name, 0)
    return encoder.pieces


def dtype_text(dtype: np.dtype) -> str | None:
    """The name under which a dtype travels; None if it does not."""
    text = dtype.name if dtype.kind == "V" or dtype.name.startswith(("bfloat", "float8")) else dtype.str
    return text if DTYPES.fullmatch(text) else None


class _Encoder:
    def __init__(self, allow_pickle: bool):
        self.pieces: list[bytes | memoryview] = []
        self._allow_pickle = allow_pickle

    def put(self, value: Any, path: str, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise InvalidArgument(f"{path[:80]}… is nested deeper than {DEPTH_MAX}; does the object contain itself?")
        write = _WRITERS.get(type(value))
        if write is not None:
            write(self, value, path, depth)
        elif type(value) is np.ndarray or isinstance(value, np.generic):
            self._put_numpy(value, path)
        elif (kind := adapters.kind_of(value)) in FRAMEWORKS:
            self._put_framework(value, kind, path)
        else:
            self._put_pickle(value, path)

    def _put_numpy(self, value: Any, path: str) -> None:
        array = np.asarray(value)
        text = dtype_text(array.dtype)
        if text is None:
            self._put_pickle(value, path)
        else:
            self._put_elements(b"a" if isinstance(value, np.ndarray) else b"g", text, array)

    def _put_elements(self, mark: bytes, dtype: str, array: np.ndarray) -> None:
        head = struct.pack(f"<BB{array.ndim}Q", len(dtype), array.ndim, *array.shape)
        elements = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data  # copied when the pieces are joined
        self.pieces += [mark, head, dtype.encode(), elements]

    def _put_framework(self, value: Any, kind: str, path: str) -> None:
        try:
            array = _READERS[kind](value)
        except Exception as error:
            raise InvalidArgument(f"{path} is an array of {kind} that cannot be read here: {error}") from error
        text = dtype_text(array.dtype)
        if text is None:
            raise InvalidArgument(
                f"{path} is an array of {kind} with elements of type {array.dtype}, which are not sent"
            )
        self.pieces += [b"x", bytes([FRAMEWORKS.index(kind)])]
        self._put_elements(b"a", text, array)

    def _put_pickle(self, value: Any, path: str) -> None:
        if not self._allow_pickle:
            raise _no_encoding(value, path)
        try:
            data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise InvalidArgument(f"{path} could not be pickled: {error}") from error
        self.put_bytes(b"p", data)

    def put_bytes(self, mark: bytes, data: bytes) -> None:
        self.pieces += [mark, struct.pack("<Q", len(data)), data]

    def put_items(self, mark: bytes, items: Any, path: str, depth: int) -> None:
        self.pieces += [mark, struct.pack("<Q", len(items))]
        for index, item in enumerate(items):
            self.put(item, f"{path}[{index}]", depth + 1)

    def put_dict(self, mark: bytes, items: dict, path: str, depth: int) -> None:
        self.pieces += [mark, struct.pack("<Q", len(items))]
        for key, item in items.items():
            place = f"{path}[{key!r:.60}]"
            self.put(key, f"the key {place}", depth + 1)
            self.put(item, place, depth + 1)


def _no_encoding(value: Any, path: str) -> InvalidArgument:
    cls = type(value)
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    if isinstance(value, (np.ndarray, np.generic)):
        name += f" of dtype {value.dtype}"
    return InvalidArgument(f"{path} is of type {name}, {_instead(value)}, or pass allow_pickle=True on every rank")


def _instead(value: Any) -> str:
    """Classes are not sent, as the receiver would have to trust their names: what to send instead."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return "a dataclass, which has no encoding here; send dataclasses.asdict(value)"
    if hasattr(type(value), "_asdict"):
        return "a named tuple, which has no encoding here; send value._asdict() or tuple(value)"
    if isinstance(value, enum.Enum):
        return "an enumeration, which has no encoding here; send value.value or value.name"
    if isinstance(value, os.PathLike):
        return "a path, which has no encoding here; send str(value)"
    for base, advice in ((dict, "dict(value)"), (list, "list(value)"), (tuple, "tuple(value)"), (str, "str(value)")):
        if isinstance(value, base):
            return f"a kind of {base.__name__}, which has no encoding here; send {advice}"
    return (
        "which has no encoding here; make it of None, bool, int, float, complex, str, bytes, list, tuple, dict, set and"
        " arrays"
    )


def _int_bytes(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)


# By the exact type: what a subclass adds would be lost.
_WRITERS: dict[type, Callable[[_Encoder, Any, str, int], None]] = {
    type(None): lambda e, value, path, depth: e.pieces.append(b"N"),
    bool: lambda e, value, path, depth: e.pieces.append(b"T" if value else b"F"),
    int: lambda e, value, path, depth: e.put_bytes(b"i", _int_bytes(value)),
    float: lambda e, value, path, depth: e.pieces.append(b"f" + struct.pack("<d", value)),
    complex: lambda e, value, path, depth: e.pieces.append(b"c" + struct.pack("<dd", value.real, value.imag)),
    str: lambda e, value, path, depth: e.put_bytes(b"s", value.encode("utf-8", "surrogatepass")),
    bytes: lambda e, value, path, depth: e.put_bytes(b"b", value),
    bytearray: lambda e, value, path, depth: e.put_bytes(b"y", bytes(value)),
    list: lambda e, value, path, depth: e.put_items(b"l", value, path, depth),
    tuple: lambda e, value, path, depth: e.put_items(b"t", value, path, depth),
    set: lambda e, value, path, depth: e.put_items(b"S", value, path, depth),
    frozenset: lambda e, value, path, depth: e.put_items(b"Z", value, path, depth),
    dict: lambda e, value, path, depth: e.put_dict(b"d", value, path, depth),
    collections.OrderedDict: lambda e, value, path, depth: e.put_dict(b"O", value, path, depth),
}


def _read_torch(tensor: Any) -> np.ndarray:
    import torch

    tensor = tensor.detach().cpu().contiguous()
    name = str(tensor.dtype).removeprefix("torch.")
    if name in SMALL_FLOATS:
        return tensor.reshape(-1).view(torch.uint8).numpy().view(numpy_dtype(name)).reshape(tuple(tensor.shape))
    return tensor.numpy()


_READERS: dict[str, Callable[[Any], np.ndarray]] = {"torch": _read_torch, "jax": np.asarray, "tensorflow": np.asarray}
