# layout.py: tensors of a call as flat arrays, copied only where they do not lie side by side.
# SPDX-License-Identifier: Apache-2.0
"""torch.distributed counts elements and does not compare shapes, so every tensor goes to the core as one flat array. A
contiguous tensor, or a list of tensors that are adjacent in memory (what ``chunk``, ``split`` and ``unbind`` give),
is used where it lies; anything else is copied into one array first, and results are copied back when the call has
ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch

from ... import _native
from ..._errors import InvalidArgument, Unsupported
from .. import gpu
from ..memory import NAMES, parts_of


def check_dense(tensor: torch.Tensor) -> None:
    """Raises Unsupported for what is not an ordinary array in the CPU's memory."""
    if tensor.layout is not torch.strided:
        raise Unsupported(
            f"backend tutti: this call takes dense tensors, not {tensor.layout}; only all_reduce takes sparse ones"
        )
    if tensor.device.type not in ("cpu", "cuda"):
        raise Unsupported(
            f"backend tutti: the tensor is on {tensor.device}; this backend serves the CPU and CUDA: copy it there "
            f"first, or make a second group for that device"
        )


def array_of(flat: torch.Tensor) -> _native.Array:
    """A contiguous tensor's memory as the core sees it."""
    if flat.device.type == "cuda":
        return gpu.array_of(flat, (flat.numel(),), None)
    return _native.Array(flat.data_ptr(), NAMES[flat.dtype], (flat.numel(),), None, False, flat)


def _are_neighbours(tensors: Sequence[torch.Tensor]) -> bool:
    if not all(tensor.is_contiguous() for tensor in tensors):
        return False
    first = tensors[0]
    if first.untyped_storage().data_ptr() != tensors[-1].untyped_storage().data_ptr():
        return False
    return all(after.data_ptr() == before.data_ptr() + before.nbytes for before, after in pairwise(tensors))


class Flat:
    """Tensors in a row, as one flat array.

    ``Flat(inputs)`` holds their elements. ``Flat(outputs, filled=False)`` has room for them, and ``restore()`` puts
    what arrived there into the tensors. Elements of a dtype that the core does not know travel as bytes, unless they
    are to be ``reduced``.
    """

    __slots__ = ("array", "counts", "_staged", "_tensors")

    def __init__(self, tensors: Sequence[torch.Tensor], *, filled: bool = True, reduced: bool = False) -> None:
        self._tensors = [tensor.detach() for tensor in tensors]
        self._staged: torch.Tensor | None = None
        self._check(reduced)
        flat = self._in_place() if len(self._tensors) else torch.empty(0)
        if flat is None:
            flat = self._staged = self._gathered(filled)
        if flat.dtype not in NAMES:
            flat = flat.view(-1).view(torch.uint8)
        self.counts = [tensor.nbytes // flat.element_size() for tensor in self._tensors]
        self.array = array_of(flat)

    def _check(self, reduced: bool) -> None:
        for tensor in self._tensors:
            check_dense(tensor)
            if tensor.dtype is not self._tensors[0].dtype:
                raise InvalidArgument(
                    f"backend tutti: tensors of one call differ in dtype, {self._tensors[0].dtype} and {tensor.dtype}"
                )
            if tensor.device != self._tensors[0].device:
                raise InvalidArgument(
                    f"backend tutti: tensors of one call are on {self._tensors[0].device} and {tensor.device}"
                )
        if reduced and self._tensors and self._tensors[0].dtype not in NAMES:
            raise Unsupported(f"backend tutti: there is no arithmetic for {self._tensors[0].dtype}; convert it first")

    def _in_place(self) -> torch.Tensor | None:
        tensors = self._tensors
        if len(tensors) == 1:
            return tensors[0] if tensors[0].is_contiguous() else None
        if not _are_neighbours(tensors):
            return None
        return tensors[0].as_strided((sum(tensor.numel() for tensor in tensors),), (1,))

    def _gathered(self, filled: bool) -> torch.Tensor:
        first = self._tensors[0]
        flat = torch.empty(sum(tensor.numel() for tensor in self._tensors), dtype=first.dtype, device=first.device)
        if filled:
            for piece, tensor in zip(parts_of(flat, self._tensors), self._tensors, strict=True):
                piece.copy_(tensor)
        return flat

    def restore(self) -> None:
        """Copies results into the tensors, if they are not there already."""
        if self._staged is not None:
            for piece, tensor in zip(parts_of(self._staged, self._tensors), self._tensors, strict=True):
                tensor.copy_(piece)

    def divide(self, divisor: int) -> None:
        """Integers, after `restore()`: towards zero."""
        for tensor in self._tensors:
            tensor.div_(divisor, rounding_mode="trunc")

    @property
    def is_staged(self) -> bool:
        return self._staged is not None
