# memory.py: tensors as the core sees them: which are taken, which are refused and why, and memory for results.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .. import _native
from .._arrays import dtypes
from .._errors import Error, InvalidArgument, Unsupported

NAMES = {getattr(torch, dtypes.common_name(name)): name for name in dtypes.NAMES}
TYPES = {name: dtype for dtype, name in NAMES.items()}


def dtype_name(dtype: torch.dtype) -> str:
    """Tutti's name of a torch dtype."""
    if dtype not in NAMES:
        raise InvalidArgument(f"elements of type {dtype} are not known")
    return NAMES[dtype]


def array_of(x: torch.Tensor) -> _native.Array:
    """The memory of a contiguous tensor of the CPU as the core sees it, whatever autograd thinks of the tensor."""
    return _native.Array(x.data_ptr(), dtype_name(x.dtype), tuple(x.shape), None, False, x)


def parts_of(flat: torch.Tensor, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The parts of a flat tensor, which lie end to end, shaped as these tensors."""
    parts = flat.split([tensor.numel() for tensor in like])
    return [part.view(tensor.shape) for part, tensor in zip(parts, like)]


def resolved(x: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy where its elements are kept conjugated or negated."""
    if x.is_neg():
        x = x.resolve_neg()
    return x.resolve_conj() if x.is_conj() else x


def new_result(call: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
    """Uninitialised memory for the result of a call on x: in C order, whatever the order of x."""
    if call.keeps_shape:
        return torch.empty_like(x, memory_format=torch.contiguous_format, requires_grad=False)
    return x.new_empty(call.output_shape(x.shape, group.rank, group.size))


def symbolic_shape(call: Any, shape: tuple, rank: int, size: int) -> tuple:
    """The shape of the result, also of lengths that a compiler does not know yet."""
    if all(type(length) is int for length in shape):
        return call.output_shape(shape, rank, size)
    if call.keeps_shape or (call.root_gets and rank != call.root):
        return tuple(shape)
    if call.joins:
        return _joined(call, list(shape), size)
    if call.splits:
        return _split(call, list(shape), rank, size)
    if call.axis == call.concat_axis and not call.sizes:
        return tuple(shape)
    return call.output_shape(tuple(int(length) for length in shape), rank, size)  # compiled once per shape


def _joined(call: Any, lengths: list, size: int) -> tuple:
    if call.axis is None:
        return (size, *lengths)
    lengths[call.axis] = sum(call.sizes) if call.sizes else lengths[call.axis] * size
    return tuple(lengths)


def _split(call: Any, lengths: list, rank: int, size: int) -> tuple:
    if call.axis is None:
        torch._check(lengths[0] == size)
        return tuple(lengths[1:])
    torch._check(lengths[call.axis] == sum(call.sizes) if call.sizes else lengths[call.axis] % size == 0)
    lengths[call.axis] = call.sizes[rank] if call.sizes else lengths[call.axis] // size
    return tuple(lengths)


def from_array(array: Any) -> torch.Tensor:
    """Native memory as a tensor, without a copy."""
    if array.dtype not in TYPES:
        raise InvalidArgument(f"torch has no dtype for elements of type {array.dtype}")
    if math.prod(array.shape) == 0:
        return torch.empty(array.shape, dtype=TYPES[array.dtype])
    return torch.from_dlpack(array)


def refusal(x: torch.Tensor, verb: str) -> Error | None:
    """Why the core cannot take this tensor, as an error to raise; None if it can."""
    if is_traceable_wrapper_subclass(x):
        return Unsupported(
            f"{verb}: a {type(x).__qualname__} is made of other tensors; pass the one that lies on this rank "
            "(for a DTensor: x.to_local())"
        )
    if torch._C._functorch.is_functorch_wrapped_tensor(x):
        return Unsupported(
            f"{verb}: inside torch.func.vmap there is no array that could be sent; call it outside, on the whole batch"
        )
    if x.is_nested:
        return Unsupported(f"{verb}: a nested tensor has no single shape; pass its parts as a list: x.unbind()")
    if x.layout is not torch.strided:
        return Unsupported(
            f"{verb}: a tensor with layout {x.layout} is not one array; pass x.to_dense(), or its indices and values"
        )
    if x.device.type == "meta":
        return InvalidArgument(f"{verb}: a tensor on the meta device has no elements; pass one on the CPU")
    if x.device.type not in ("cpu", "cuda"):
        return Unsupported(
            f"{verb}: the tensor is on {x.device}; memory of the CPU and of CUDA devices is served here: pass x.cpu()"
        )
    if x.device.type == "cuda" and (problem := _native.gpu_problem()):
        return Unsupported(f"{verb}: the tensor is on {x.device}, which Tutti cannot use: {problem}; pass x.cpu()")
    if x.is_quantized:
        return Unsupported(f"{verb}: a quantised tensor ({x.dtype}) has its own scale; pass x.dequantize() or x.int_repr()")
    if x.dtype not in NAMES:
        return InvalidArgument(f"{verb}: elements of type {x.dtype} are not known; convert them, for example x.float()")
    if x._is_zerotensor():
        return InvalidArgument(f"{verb}: a zero tensor of torch's own kind has no memory; pass x.clone()")
    return None
