# gpu.py: tensors on GPUs as the core sees them.
# SPDX-License-Identifier: Apache-2.0
"""A call begins behind what the current stream has when it is made, and is over when the GPU has written its result: what
is done with the result afterwards needs no care, on any stream."""

from __future__ import annotations

from typing import Any

import torch

from .. import _native
from . import memory

_DEVICE = "cuda"


def is_on_gpu(x: Any) -> bool:
    return x is not None and x.device.type == _DEVICE


def on_cpu(x: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy of one on a GPU in the CPU's memory."""
    return x.cpu() if x.device.type == _DEVICE else x


def seen(x: torch.Tensor | None) -> Any:
    """What the core reads or writes: the tensor itself, or a description of its memory on the GPU."""
    if x is None or x.device.type != _DEVICE:
        return x
    return array_of(x, tuple(x.shape), x.stride())


def array_of(x: torch.Tensor, shape: tuple, strides: tuple | None) -> _native.Array:
    """The memory of a tensor on a GPU, behind the work of the current stream."""
    index, pointer = x.device.index, x.data_ptr()
    if pointer != 0:
        _native.note_stream(pointer, index, torch._C._cuda_getCurrentRawStream(index))
    return _native.Array(pointer, memory.NAMES[x.dtype], shape, strides, False, x, index)


def flat_array(x: torch.Tensor) -> _native.Array:
    """A contiguous tensor as collectives take it, whatever autograd thinks of it. On a GPU the next call with it begins behind the
    work of the current stream: it is made anew for each call."""
    return array_of(x, tuple(x.shape), None) if is_on_gpu(x) else memory.array_of(x)
