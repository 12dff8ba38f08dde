# halo.py: filling the margins of an array from a mesh's neighbours, for each framework.
# SPDX-License-Identifier: Apache-2.0
"""Where nobody asks for gradients and arrays can be written, the core does it in place. Otherwise it is made of slices and of
sendrecv, whose gradients the frameworks know: axis by axis, so that corners come from where they belong."""

from __future__ import annotations

from typing import Any

from .. import _native, adapters
from .._arrays.operations import array_ops_of
from .._errors import InvalidArgument
from .._messages.messages import TAG_MAX, nobody


def exchange(mesh: Any, x: Any, halo: list[int], axes: list[int], out: Any, timeout: Any) -> Any:
    ops = array_ops_of(x, "exchange")
    if out is not None and out is not x:
        raise InvalidArgument("exchange: out is the array itself, whose margins are filled, or left out")
    if is_plain(x):
        result = ops.copy(x) if out is None else out
        memory = adapters.adapter_of(result, verb="exchange").memory(result, True)
        mesh._grid.exchange(mesh.group, memory, halo, axes, timeout)
        return result
    if out is not None:
        raise InvalidArgument("exchange: out= is for NumPy and for tensors without gradients; take the result")
    return _composed(mesh, ops, x, _checked(mesh, x, halo, axes), timeout)


def is_plain(x: Any) -> bool:
    """A NumPy array, or a tensor without a graph."""
    kind = adapters.kind_of(x)
    if kind != "torch":
        return kind == "numpy"
    import torch

    return not torch.compiler.is_compiling() and not (x.requires_grad and torch.is_grad_enabled())


def _checked(mesh: Any, x: Any, halo: list[int], axes: list[int]) -> list[tuple[int, int]]:
    """The axis of the array and the width of its margins, for each axis of the mesh."""
    shape = [int(length) for length in x.shape]
    return list(_native.halo_axes(shape, len(mesh.axes), halo, axes))


def _composed(mesh: Any, ops: Any, x: Any, found: list[tuple[int, int]], timeout: Any) -> Any:
    for index, (axis, halo) in enumerate(found):
        if halo == 0:
            continue
        length = int(x.shape[axis])
        lower, upper = mesh.neighbour(mesh.axes[index], -1), mesh.neighbour(mesh.axes[index], 1)
        tag = TAG_MAX + 1 + 2 * index

        def moved(begin: int, dst: int, src: int, tag: int, margin: int) -> Any:
            """What comes for a margin. From nobody zeros come, which are added: so the gradient of what is sent returns on every rank."""
            call = _native.Call("sendrecv", dst=dst, src=src, tag=tag)
            came = _native.apply(call, ops.slice(x, axis, begin, halo), None, mesh.group, False, timeout)
            return came + ops.slice(x, axis, margin, halo) if src == nobody else came

        above = moved(halo, lower, upper, tag, length - halo)
        below = moved(length - 2 * halo, upper, lower, tag + 1, 0)
        x = ops.concat([below, ops.slice(x, axis, halo, length - 2 * halo), above], axis)
    return x


# Tags of neighbour collectives follow those of halos, as in src/parallel/halo.cpp.
_PARTS_TAG = TAG_MAX + 1 + 2 * (1 << 16)


def exchange_parts(mesh: Any, x: Any, sends_all: bool, timeout: Any) -> Any:
    """neighbour_all_gather (`sends_all`) and neighbour_all_to_all."""
    verb = "neighbour_all_gather" if sends_all else "neighbour_all_to_all"
    ops = array_ops_of(x, verb)
    neighbours = [mesh.neighbour(axis, distance) for axis in mesh.axes for distance in (-1, 1)]
    rows = 1 if sends_all else _rows_of(x, len(neighbours), verb)
    if not is_plain(x):
        return _parts_composed(mesh, ops, x[None] if sends_all else x, neighbours, rows, sends_all, timeout)
    result = ops.concat([x[None]] * len(neighbours), 0) if sends_all else ops.copy(x)
    for part, neighbour in enumerate(neighbours):
        if neighbour == nobody:
            result[part * rows : (part + 1) * rows] = 0
    memory = [adapters.adapter_of(array, verb=verb).memory(array, writes) for array, writes in ((x, False), (result, True))]
    mesh._grid.exchange_parts(mesh.group, *memory, sends_all, timeout)
    return result


def _rows_of(x: Any, parts: int, verb: str) -> int:
    length = int(x.shape[0]) if len(x.shape) else 0
    if length == 0 or length % parts:
        raise InvalidArgument(f"{verb}: the first axis has length {length}; it holds a part for each of {parts} neighbours")
    return length // parts


def _parts_composed(mesh: Any, ops: Any, x: Any, neighbours: list[int], rows: int, sends_all: bool, timeout: Any) -> Any:
    """Of sendrecv, whose gradients the frameworks know: first everything goes down, then up."""
    parts: list[Any] = [None] * len(neighbours)
    for sent, peer in enumerate(neighbours):
        got = sent ^ 1  # what goes to the lower neighbour comes from the upper one
        data = x if sends_all else ops.slice(x, 0, sent * rows, rows)
        call = _native.Call("sendrecv", dst=peer, src=neighbours[got], tag=_PARTS_TAG + sent)
        parts[got] = _native.apply(call, data, None, mesh.group, False, timeout)
    return ops.concat(parts, 0)
