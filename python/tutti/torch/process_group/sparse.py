# sparse.py: torch.distributed's all_reduce of sparse tensors.
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ..._errors import InvalidArgument, Unsupported
from ..sparse import SparseSum
from .options import Options
from .work import Work

if TYPE_CHECKING:
    from .group import ProcessGroup


def start_sparse_all_reduce(process_group: ProcessGroup, tensor: torch.Tensor, options: Options) -> Work:
    """The sum or mean of all ranks' entries, in place."""
    if tensor.layout is not torch.sparse_coo:
        raise Unsupported(f"backend tutti: all_reduce takes dense and sparse COO tensors, not {tensor.layout}")
    is_mean = options.op == "mean" and (tensor.is_floating_point() or tensor.is_complex())
    if options.op != "sum" and not is_mean:
        raise InvalidArgument(f"backend tutti: all_reduce of sparse tensors adds them up; {options.op} is not possible")
    with process_group._recorded("all_reduce", [tensor]), process_group._call_lock:
        total = SparseSum(tensor, process_group.group, options.seconds or process_group._seconds)

    def settle() -> list[torch.Tensor]:
        with torch.no_grad():  # detach() would make another tensor with other indices
            tensor.copy_(total.result(process_group.size() if is_mean else 1))
        return [tensor]

    work = Work(total.parts, [tensor], settle)
    if not options.is_async:
        work.complete()
    return work
