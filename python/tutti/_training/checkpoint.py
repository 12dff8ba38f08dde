# checkpoint.py: the pieces of a checkpoint: arrays in safetensors files, and where they belong.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import adapters
from .._arrays.dtypes import common_name, numpy_dtype
from .._errors import Error, InvalidArgument

_PLAIN = (bool, int, float, str, type(None))


@dataclasses.dataclass(slots=True)
class Leaf:
    """An array of the tree, and where this rank's part lies in the whole."""

    path: str
    array: Any
    sharded: Any = None  # a checkpoint.Sharded


def _is_array(value: Any) -> bool:
    return adapters.kind_of(value) in ("numpy", "torch", "jax", "tensorflow") and hasattr(value, "shape")


def take_apart(value: Any, leaves: list[Leaf], path: str) -> Any:
    """The structure as JSON has it; arrays go to `leaves`."""
    if type(value).__name__ == "Sharded" and hasattr(value, "place"):
        leaves.append(Leaf(path, value.array, value))
        return {"leaf": path}
    if isinstance(value, _PLAIN):
        return {"value": value}
    if _is_array(value):
        leaves.append(Leaf(path, value))
        return {"leaf": path}
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, (str, int)) or isinstance(key, bool):
                place = path or "the top"
                raise InvalidArgument(f"checkpoint: the key {key!r} at {place} is neither a text nor a whole number")
        return {"dict": [[key, take_apart(part, leaves, f"{path}/{key}")] for key, part in value.items()]}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [take_apart(part, leaves, f"{path}/{i}") for i, part in enumerate(value)]}
    raise InvalidArgument(
        f"checkpoint: a {type(value).__name__} at {path or 'the top'} cannot be saved; arrays, numbers, texts, dicts, lists "
        "and tuples can"
    )


def _bytes_of(array: Any) -> np.ndarray:
    """The elements in row-major order, as bytes."""
    if adapters.kind_of(array) == "torch":
        import torch

        return array.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


@dataclasses.dataclass(slots=True)
class _Piece:
    """What this rank writes of an array: `shape` elements from `begin` on, of an array of the shape `whole`."""

    leaf: Leaf
    dtype: str
    whole: list[int]
    begin: list[int]
    shape: list[int]

    def length(self) -> int:
        return _count(self.shape) * numpy_dtype(self.dtype).itemsize


def _own_pieces(leaves: Sequence[Leaf], rank: int, size: int) -> list[_Piece]:
    """This rank's part of every array that is split, and its share of the others, which are dealt out alike everywhere."""
    own: list[_Piece] = []
    load = [0] * size
    for leaf in leaves:
        adapter = adapters.adapter_of(leaf.array)
        shape, dtype = [int(n) for n in adapter.shape_of(leaf.array)], adapter.dtype_name(leaf.array)
        whole, begin = list(shape), [0] * len(shape)
        if leaf.sharded is not None:
            axis = leaf.sharded.axis % len(shape)
            begin[axis], length = leaf.sharded.place(rank, size)
            whole[axis] = leaf.sharded.total
            if length != shape[axis]:
                held = f"{shape[axis]} of {leaf.sharded.total}"
                raise InvalidArgument(f"checkpoint: {leaf.path} has {held}, expected {length}")
        else:
            writer = min(range(size), key=lambda r: (load[r], r))
            load[writer] += _count(shape) + 64
            if writer != rank:
                continue
        own.append(_Piece(leaf, dtype, whole, begin, shape))
    # The format allows no gaps: the widest elements first keeps every array aligned for those who map the file.
    return sorted(own, key=lambda piece: -numpy_dtype(piece.dtype).itemsize)


# The names that the safetensors format has for dtypes. It has no complex128, which is written as pairs of float64.
_SAFETENSORS = {
    "bool": "BOOL", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "int8": "I8", "int16": "I16",
    "int32": "I32", "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "float8_e4m3": "F8_E4M3", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "complex64": "C64",
}  # fmt: skip


def _header(pieces: Sequence[_Piece]) -> bytes:
    """The beginning of a safetensors file: the length of what follows, and names, dtypes, shapes and places in JSON."""
    entries: dict[str, Any] = {}
    # Tools that read weights ask for the framework, and take "pt" for "in row-major order".
    metadata = {"format": "pt"}
    end = 0
    for piece in pieces:
        name = piece.leaf.path[1:] or "array"
        pairs = piece.dtype == "complex128"
        begin, end = end, end + piece.length()
        entries[name] = {
            "dtype": "F64" if pairs else _SAFETENSORS[piece.dtype],
            "shape": [*piece.shape, 2] if pairs else piece.shape,
            "data_offsets": [begin, end],
        }
        if piece.whole != piece.shape:
            metadata[name] = json.dumps({"begin": piece.begin, "whole": piece.whole})
    text = json.dumps({"__metadata__": metadata, **entries}).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def write_pieces(file: Path, leaves: Sequence[Leaf], rank: int, size: int) -> dict[str, Any]:
    """Writes this rank's pieces; gives what the index says of them."""
    own = _own_pieces(leaves, rank, size)
    written: dict[str, Any] = {}
    with file.open("wb") as out:
        out.write(_header(own))
        for piece in own:
            data = _bytes_of(piece.leaf.array)
            entry = {"file": file.name, "offset": out.tell(), "begin": piece.begin, "shape": piece.shape, "crc": zlib.crc32(data)}
            written[piece.leaf.path] = {"dtype": piece.dtype, "shape": piece.whole, "pieces": [entry]}
            out.write(data)
        out.flush()
        os.fsync(out.fileno())
    sync_folder(file.parent)
    return written


def sync_folder(folder: Path) -> None:
    """Names are on the disk, too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def merge(every: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All ranks' pieces as one list; every element of every array must be in one of them."""
    merged: dict[str, Any] = {}
    for pieces in every:
        for path, leaf in pieces.items():
            known = merged.setdefault(path, {**leaf, "pieces": []})
            if (known["dtype"], known["shape"]) != (leaf["dtype"], leaf["shape"]):
                raise InvalidArgument(f"checkpoint: ranks disagree about {path}: {known['dtype']} {known['shape']} and "
                                      f"{leaf['dtype']} {leaf['shape']}")
            known["pieces"] += leaf["pieces"]
    for path, leaf in merged.items():
        if sum(_count(p["shape"]) for p in leaf["pieces"]) != _count(leaf["shape"]):
            raise InvalidArgument(f"checkpoint: the ranks' parts of {path} do not make up {leaf['shape']}")
    return merged


def _count(shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def named_in(folder: Path, name: Any) -> Path:
    """What the index names in a folder of the checkpoint: it may come from anywhere, and does not lead out of it."""
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\0" in name:
        raise Error(f"checkpoint: the index names {name!r}, which does not lie in {folder}; it is damaged or forged")
    if (folder / name).is_symlink():
        raise Error(f"checkpoint: {folder / name} is a symbolic link, which may lead out of the checkpoint")
    return folder / name


class Reader:
    """Arrays, whole or in part, from the files of one checkpoint."""

    def __init__(self, folder: Path, leaves: dict[str, Any]):
        self.folder = folder
        self.leaves = leaves

    def read(self, path: str, axis: int = 0, begin: int = 0, length: int | None = None) -> np.ndarray:
        """Elements `begin` to `begin + length` along an axis; all without a length."""
        leaf = self.leaves[path]
        shape = list(leaf["shape"])
        if length is not None:
            shape[axis] = length
        result = np.empty(shape, numpy_dtype(leaf["dtype"]))
        for piece in leaf["pieces"]:
            first = max(begin, piece["begin"][axis]) if shape else 0
            last = min(begin + shape[axis], piece["begin"][axis] + piece["shape"][axis]) if shape else 1
            if first >= last:
                continue
            data = self._piece(piece, result.dtype, path)
            if not shape:
                return data
            source = [slice(None)] * len(shape)
            target = [slice(b, b + n) for b, n in zip(piece["begin"], piece["shape"], strict=True)]
            source[axis] = slice(first - piece["begin"][axis], last - piece["begin"][axis])
            target[axis] = slice(first - begin, last - begin)
            result[tuple(target)] = data[tuple(source)]
        return result

    def _piece(self, piece: dict[str, Any], dtype: np.dtype, path: str) -> np.ndarray:
        file = named_in(self.folder, piece["file"])
        count = _count(piece["shape"]) * dtype.itemsize
        try:
            with file.open("rb") as stream:
                stream.seek(piece["offset"])
                data = stream.read(count)
        except FileNotFoundError:
            raise Error(f"checkpoint: {file} is missing; it holds a part of {path}") from None
        if len(data) != count or zlib.crc32(data) != piece["crc"]:
            raise Error(f"checkpoint: {file} is damaged: its part of {path} is not what was written")
        return np.frombuffer(data, dtype).reshape(piece["shape"])


def put_together(structure: Any, reader: Reader, like: Any, place: tuple[int, int], path: str) -> Any:
    """The tree again; `like` says as which kinds of arrays, and which parts of them."""
    if "value" in structure:
        return structure["value"]
    if "leaf" in structure:
        return _array_like(reader, structure["leaf"], like, place)
    if "dict" in structure:
        saved = {key if isinstance(key, str) else int(key): part for key, part in structure["dict"]}
        if like is not None and not isinstance(like, dict):
            place = path or "the top"
            raise InvalidArgument(f"checkpoint: there is a dict at {place}, but like= has a {type(like).__name__}")
        wanted = saved if like is None else like
        for key in wanted:
            if key not in saved:
                known = ", ".join(map(str, saved)) or "none"
                raise InvalidArgument(f"checkpoint: there is no {path}/{key}; there are {known}")
        return {k: put_together(saved[k], reader, like and like[k], place, f"{path}/{k}") for k in wanted}
    kind = "list" if "list" in structure else "tuple"
    if like is not None and len(like) != len(structure[kind]):
        counts = f"{len(structure[kind])} parts, but like= has {len(like)}"
        raise InvalidArgument(f"checkpoint: {path or 'the top'} has {counts}")
    parts = [put_together(s, reader, like and like[i], place, f"{path}/{i}") for i, s in enumerate(structure[kind])]
    return parts if kind == "list" else tuple(parts)


def _array_like(reader: Reader, path: str, like: Any, place: tuple[int, int]) -> Any:
    whole = reader.leaves[path]["shape"]
    if type(like).__name__ == "Sharded" and hasattr(like, "place"):
        axis = like.axis % len(whole)
        if whole[axis] != like.total:
            raise InvalidArgument(f"checkpoint: {path} has length {whole[axis]} along axis {axis}, not {like.total}")
        begin, length = like.place(*place)
        return _as_kind(reader.read(path, axis, begin, length), like.array)
    if _is_array(like) and [int(n) for n in like.shape] != whole:
        raise InvalidArgument(f"checkpoint: {path} has the shape {tuple(whole)}, but like= has {tuple(like.shape)}")
    return _as_kind(reader.read(path), like)


def _as_kind(array: np.ndarray, like: Any) -> Any:
    kind = adapters.kind_of(like)
    if kind == "torch":
        import torch

        if array.size == 0:
            return torch.empty(array.shape, dtype=like.dtype)
        flat = torch.from_numpy(np.ascontiguousarray(array).reshape(-1).view(np.uint8).copy())
        dtype = getattr(torch, common_name(array.dtype.name))
        return flat.view(dtype).view(array.shape).to(like.dtype)
    if kind == "jax":
        import jax.numpy as jnp

        return jnp.asarray(array, like.dtype)
    if kind == "tensorflow":
        import tensorflow as tf

        return tf.constant(array, like.dtype)
    return array
