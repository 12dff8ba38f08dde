# decoding.py: Python objects from bytes that another rank sent, none of which are trusted.
# SPDX-License-Identifier: Apache-2.0
"""Every length is compared with the bytes that are there before memory is taken for it, so that what is made is never
much larger than what was received; trees have a greatest depth; nothing is looked up or called by a name that was
sent."""

from __future__ import annotations

import collections
import math
import pickle
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _native, adapters
from .._arrays.dtypes import OUR_NAMES, SMALL_FLOATS, numpy_dtype
from .._errors import Error, InvalidArgument
from .encoding import DEPTH_MAX, DTYPES, FRAMEWORKS, dtype_text

_AXES_MAX = 64


def decode(data: memoryview, sender: str, allow_pickle: bool = False) -> Any:
    """The object. Raises Error if the bytes are none, InvalidArgument if they hold a pickle that is not allowed."""
    decoder = _Decoder(data, sender, allow_pickle)
    value = decoder.take(0)
    if decoder.left:
        raise decoder.damaged(f"{decoder.left} bytes follow its end")
    return value


class _Decoder:
    def __init__(self, data: memoryview, sender: str, allow_pickle: bool):
        self._data = data
        self._begin = 0
        self._sender = sender
        self._allow_pickle = allow_pickle

    @property
    def left(self) -> int:
        return len(self._data) - self._begin

    def damaged(self, why: str) -> Error:
        return Error(f"the object from {self._sender} is damaged at byte {self._begin}: {why}")

    def raw(self, count: int) -> memoryview:
        if count > self.left:
            raise self.damaged(f"it needs {count} more bytes, and {self.left} are there")
        self._begin += count
        return self._data[self._begin - count : self._begin]

    def length(self) -> int:
        return struct.unpack("<Q", self.raw(8))[0]

    def sized(self) -> memoryview:
        return self.raw(self.length())

    def count(self, bytes_each: int = 1) -> int:
        count = self.length()
        if count * bytes_each > self.left:
            raise self.damaged(f"it says to have {count} parts, but only {self.left} bytes are there")
        return count

    def take(self, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise self.damaged(f"it is nested deeper than {DEPTH_MAX}")
        mark = bytes(self.raw(1))
        read = _READERS.get(mark)
        if read is None:
            raise self.damaged(f"there is no type {mark!r}")
        return read(self, depth)

    def items(self, depth: int) -> list:
        return [self.take(depth + 1) for _ in range(self.count())]

    def hashed(self, make: Callable[[list], Any], depth: int) -> Any:
        items = self.items(depth)
        try:
            return make(items)
        except TypeError as error:
            raise self.damaged(str(error)) from error

    def mapping(self, depth: int) -> dict:
        result = {}
        for _ in range(self.count(bytes_each=2)):
            key = self.take(depth + 1)
            try:
                hash(key)
            except TypeError as error:
                raise self.damaged(f"a key of a dict: {error}") from error
            result[key] = self.take(depth + 1)
        return result

    def text(self) -> str:
        try:
            return str(self.sized(), "utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self.damaged(f"a text that is not UTF-8: {error.reason}") from error

    def _dtype(self, text: str) -> np.dtype:
        if text in SMALL_FLOATS:
            return numpy_dtype(text)
        try:
            dtype = np.dtype(text) if DTYPES.fullmatch(text) else None  # NumPy reads more than one would think
        except (TypeError, ValueError):
            dtype = None
        if dtype is None or dtype_text(dtype) != text:
            raise self.damaged(f"there is no dtype {text!r}")
        return dtype

    def array(self) -> np.ndarray:
        text_bytes, axes = self.raw(2)
        if axes > _AXES_MAX:
            raise self.damaged(f"an array with {axes} axes")
        shape = struct.unpack(f"<{axes}Q", self.raw(8 * axes))
        dtype = self._dtype(str(self.raw(text_bytes), "latin-1"))
        elements = self.raw(math.prod(shape) * dtype.itemsize)
        if dtype.kind == "U" and np.frombuffer(elements, dtype.byteorder + "u4").max(initial=0) > sys.maxunicode:
            raise self.damaged("a text with characters that do not exist")
        try:
            return np.frombuffer(bytearray(elements), dtype).reshape(shape) if len(elements) else np.empty(shape, dtype)
        except (ValueError, MemoryError) as error:  # lengths beyond what NumPy counts, next to one that is zero
            raise self.damaged(f"an array of shape {shape}: {error}") from error

    def scalar(self) -> Any:
        array = self.array()
        if array.ndim != 0:
            raise self.damaged(f"a scalar with {array.ndim} axes")
        return array[()]

    def framework_array(self) -> Any:
        which = self.raw(1)[0]
        if which >= len(FRAMEWORKS):
            raise self.damaged(f"there is no framework {which}")
        if bytes(self.raw(1)) != b"a":
            raise self.damaged("an array of a framework without an array")
        array = self.array()
        name = OUR_NAMES.get(array.dtype.name, array.dtype.name)
        try:
            adapter = adapters.get(FRAMEWORKS[which])
            memory = _native.Array(array.ctypes.data, name, array.shape, None, False, array)
            return adapter.from_array(memory, None)
        except (ImportError, InvalidArgument) as error:
            raise Error(
                f"{self._sender} sent an array of {FRAMEWORKS[which]}, which cannot be made here: {error}; send it as a"
                " NumPy array"
            ) from error

    def unpickled(self) -> Any:
        data = self.sized()
        if not self._allow_pickle:
            raise InvalidArgument(
                f"{self._sender} sent a pickle, which runs code of the sender's choice and is refused here; "
                "pass allow_pickle=True on every rank if you trust all of them"
            )
        try:
            return pickle.loads(data)
        except Exception as error:
            raise Error(f"the pickle from {self._sender} could not be read: {type(error).__name__}: {error}") from error


_READERS: dict[bytes, Callable[[_Decoder, int], Any]] = {
    b"N": lambda d, depth: None,
    b"T": lambda d, depth: True,
    b"F": lambda d, depth: False,
    b"i": lambda d, depth: int.from_bytes(d.sized(), "little", signed=True),
    b"f": lambda d, depth: struct.unpack("<d", d.raw(8))[0],
    b"c": lambda d, depth: complex(*struct.unpack("<dd", d.raw(16))),
    b"s": lambda d, depth: d.text(),
    b"b": lambda d, depth: bytes(d.sized()),
    b"y": lambda d, depth: bytearray(d.sized()),
    b"l": lambda d, depth: d.items(depth),
    b"t": lambda d, depth: tuple(d.items(depth)),
    b"S": lambda d, depth: d.hashed(set, depth),
    b"Z": lambda d, depth: d.hashed(frozenset, depth),
    b"d": lambda d, depth: d.mapping(depth),
    b"O": lambda d, depth: collections.OrderedDict(d.mapping(depth)),
    b"a": lambda d, depth: d.array(),
    b"g": lambda d, depth: d.scalar(),
    b"x": lambda d, depth: d.framework_array(),
    b"p": lambda d, depth: d.unpickled(),
}
