# torch.py: torch tensors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math
from typing import Any

import torch

from .. import _native
from .._errors import InvalidArgument, Unsupported
from .._process import ranges
from ..torch.autograd import tie  # noqa: F401
from ..torch.gpu import is_on_gpu
from ..torch.memory import NAMES, TYPES, refusal, resolved
from ..torch.memory import from_array as _tensor_over
from ..torch.memory import parts_of as unpack
from ..torch.verbs import apply, refuse_gradients  # noqa: F401

ranges.watch_torch()
for _type in (torch.Tensor, torch.nn.Parameter):
    _native.serve(_type, apply)
# "Unsafe": the parts are no views of each other to autograd. Nor are they here: nobody else has the whole.
_native.serve_trees(
    [torch.Tensor, torch.nn.Parameter], makes=torch.Tensor, split=torch.unsafe_split_with_sizes
)

overlaps = True  # several calls may be under way at once


def pack(leaves: list[torch.Tensor]) -> torch.Tensor:
    """Tensors of one dtype end to end."""
    return torch.cat([leaf.reshape(-1) for leaf in leaves])


def unpack_into(flat: torch.Tensor, outs: list[torch.Tensor]) -> None:
    """The parts of `flat` copied into the caller's tensors."""
    if flat.requires_grad and torch.is_grad_enabled():
        raise Unsupported("out= under autograd would overwrite what backward needs; leave it out, or use no_grad()")
    for part, out in zip(unpack(flat, outs), outs, strict=True):
        out.copy_(part)


def is_writable(x: Any) -> bool:
    """Whether a result can go there."""
    return isinstance(x, torch.Tensor)


def memory(x: torch.Tensor, write: bool) -> torch.Tensor:
    """What a message is read from, or written to; these have no gradients."""
    refuse_gradients("recv" if write else "send", x)
    if write and (x.is_conj() or x.is_neg()):
        raise InvalidArgument("recv: out is a conjugated or negated view; pass the tensor it is a view of")
    if is_on_gpu(x):  # messages move the CPU's memory
        if write:
            raise Unsupported("recv: out= is a tensor on a GPU; use like= and take the result")
        return x.cpu()
    return x if write else resolved(x)


def dtype_name(x: torch.Tensor) -> str:
    """Tutti's name of the elements' type."""
    name = NAMES.get(x.dtype)
    if name is None:
        raise refusal(x, "this call") or InvalidArgument(f"elements of type {x.dtype} are not known")
    return name


def shape_of(x: torch.Tensor) -> tuple[int, ...]:
    return tuple(x.shape)


def from_array(array: _native.Array, like: Any) -> torch.Tensor:
    """Native memory as a tensor, without a copy; on the GPU of `like`, if it is on one."""
    tensor = _tensor_over(array)
    return tensor.to(like.device) if isinstance(like, torch.Tensor) and is_on_gpu(like) else tensor


def empty(shape: tuple[int, ...], dtype: str, group: Any) -> torch.Tensor:
    """An uninitialised tensor in memory that this host's ranks reach without a copy."""
    if dtype not in TYPES:
        raise InvalidArgument(f"empty: torch has no dtype {dtype}")
    kind = TYPES[dtype]
    if math.prod(shape) == 0:
        return torch.empty(shape, dtype=kind)
    return torch.from_dlpack(group.memory(math.prod(shape) * kind.itemsize)).view(kind).view(shape)
