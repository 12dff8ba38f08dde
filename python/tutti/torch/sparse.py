# sparse.py: all_reduce and average of sparse tensors, as embeddings' gradients are.
# SPDX-License-Identifier: Apache-2.0
"""Every rank gets all ranks' indices and values, however many each has, and adds them up. The sum has no fewer entries
than the ranks' entries together have places, so nothing shorter could travel without knowing them. Those on a GPU go by way
of the host: how many come is not known before."""
from __future__ import annotations

from typing import Any

import torch

from .. import _native
from .._arrays.tree import Flat, hash_of
from .._calls.works import Works
from .._errors import InvalidArgument, Unsupported
from .gpu import on_cpu
from .memory import NAMES, array_of, from_array
from .running import refused

_OPS = ("sum", "mean")


def is_sparse(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.layout is torch.sparse_coo


class SparseSum:
    """A sum under way: `parts` are its calls, `result()` is the sum once they have ended."""

    def __init__(self, tensor: torch.Tensor, group: Any, timeout: Any):
        self._own = tensor.detach().coalesce()
        # By entry, so that one rank's entries follow another's.
        rows = (self._own.indices().t().contiguous(), self._own.values().contiguous())
        self._value_shape = rows[1].shape[1:]
        # Ranks must mean the same whole; what travels does not show it.
        text = f"sparse {tuple(tensor.shape)} {self._own.sparse_dim()}"
        call = _native.Call("all_gather", uneven=True, structure=hash_of(text))
        self.parts = [group.start_sized(call, array_of(on_cpu(part).view(-1)), timeout=timeout) for part in rows]

    def result(self, divisor: int = 1) -> torch.Tensor:
        places, values = (from_array(part.wait()).to(self._own.device) for part in self.parts)
        values = values.view(-1, *self._value_shape)
        return torch.sparse_coo_tensor(
            places.view(-1, self._own.sparse_dim()).t(),
            values if divisor == 1 else values / divisor,
            self._own.shape,
            is_coalesced=False,
            check_invariants=False,
        ).coalesce()


def all_reduce(call: Any, x: torch.Tensor, out: Any, group: Any, async_op: bool, timeout: Any) -> Any:
    """tutti.all_reduce of a sparse COO tensor: op="sum" or "mean"."""
    error = _what_is_wrong(call, x, out)
    if error is not None:
        raise refused(error, call, group)
    total = SparseSum(x, group, timeout)
    divisor = group.size if call.op.name == "mean" else 1
    if async_op:
        return Works(total.parts, lambda _: total.result(divisor), call.verb)
    return total.result(divisor)


def _what_is_wrong(call: Any, x: torch.Tensor, out: Any) -> Exception | None:
    if call.op.name not in _OPS:
        return Unsupported(f"{call.verb}: sparse tensors are added up or averaged; pass x.to_dense() for {call.op.name}")
    if x.dtype not in NAMES:
        return InvalidArgument(f"{call.verb}: elements of type {x.dtype} are not known; convert them, for example x.float()")
    if call.op.name == "mean" and not (x.is_floating_point() or x.is_complex()):
        return InvalidArgument(f"{call.verb}: the mean of integers is none of them; cast the tensor, or ask for the sum")
    if out is not None:
        return Unsupported(f"{call.verb}: a sparse sum has as many entries as it needs, so out= cannot hold it; use the result")
    if x.requires_grad and torch.is_grad_enabled():
        return Unsupported(f"{call.verb}: there are no gradients through sparse tensors; pass x.detach() or x.to_dense()")
    return None


def reduce_leaves(call: Any, flat: Flat, group: Any, timeout: Any) -> Any:
    """The call on a tree with sparse tensors in it: those one by one, the rest together."""
    results = list(flat.leaves)
    dense = [place for place, leaf in enumerate(flat.leaves) if not is_sparse(leaf)]
    together = _native.apply(call, [flat.leaves[place] for place in dense], None, group, False, timeout) if dense else []
    for place, result in zip(dense, together, strict=True):
        results[place] = result
    members = _native.world() if group is None else group
    sums = {
        place: all_reduce(call, leaf, None, members, True, timeout)
        for place, leaf in enumerate(flat.leaves) if is_sparse(leaf)
    }
    for place, work in sums.items():
        results[place] = work.wait()
    return flat.rebuild(results)
