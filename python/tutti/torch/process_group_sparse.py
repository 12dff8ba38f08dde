# process_group_sparse.py: all_reduce of sparse tensors, as embeddings' gradients are.
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .. import _native
from .._errors import InvalidArgument, Unsupported
from .memory import from_array
from .process_group_layout import array_of
from .process_group_options import Options
from .process_group_work import Work

if TYPE_CHECKING:
    from .process_group import ProcessGroup


def start_sparse_all_reduce(process_group: ProcessGroup, tensor: torch.Tensor, options: Options) -> Work:
    """Every rank gets all ranks' indices and values, however many each has, and adds them up.

    The sum has no fewer entries than the ranks' entries together have places, so nothing shorter could travel without
    knowing them.
    """
    if tensor.layout is not torch.sparse_coo:
        raise Unsupported(f"backend tutti: all_reduce takes dense and sparse COO tensors, not {tensor.layout}")
    if options.op != "sum":
        raise InvalidArgument(f"backend tutti: all_reduce of sparse tensors adds them up; {options.op} is not possible")
    own = tensor.detach().coalesce()
    # By entry, so that one rank's entries follow another's.
    places = own.indices().t().contiguous()
    values = own.values().contiguous()
    seconds = options.seconds or process_group._seconds
    call = _native.Call("all_gather", uneven=True)
    with process_group._recorded("all_reduce", [tensor]), process_group._door:
        parts = [
            process_group.group.start_sized(call, array_of(rows.view(-1)), timeout=seconds) for rows in (places, values)
        ]

    def settle() -> list[torch.Tensor]:
        all_places, all_values = (from_array(part.wait()) for part in parts)
        total = torch.sparse_coo_tensor(
            all_places.view(-1, own.sparse_dim()).t(),
            all_values.view(-1, *values.shape[1:]),
            own.shape,
            is_coalesced=False,
            check_invariants=False,
        )
        with torch.no_grad():  # detach() would make another tensor with other indices
            tensor.copy_(total.coalesce())
        return [tensor]

    work = Work(parts, [tensor], settle)
    if not options.is_async:
        work.wait()
    return work
