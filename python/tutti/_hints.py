# _hints.py: names of other libraries, and their counterparts here.
# SPDX-License-Identifier: Apache-2.0
"""Looked at only when a name is not found: a name of torch.distributed, MPI or Horovod leads to the name that
Tutti has for the same thing."""
from __future__ import annotations

import difflib
from collections.abc import Iterable

_WORLD = "tutti.world().rank, or tutti.context().rank"
_NAMES = {
    "allreduce": "tutti.all_reduce",
    "Allreduce": "tutti.all_reduce",
    "allreduce_": "tutti.all_reduce(x, out=x)",
    "allgather": "tutti.all_gather",
    "Allgather": "tutti.all_gather",
    "all_gather_into_tensor": "tutti.all_gather",
    "allgather_object": "tutti.all_gather_object",
    "reducescatter": "tutti.reduce_scatter",
    "reduce_scatter_tensor": "tutti.reduce_scatter",
    "alltoall": "tutti.all_to_all",
    "Alltoall": "tutti.all_to_all",
    "all_to_all_single": "tutti.all_to_all",
    "bcast": "tutti.broadcast",
    "Bcast": "tutti.broadcast",
    "broadcast_object_list": "tutti.broadcast_object",
    "Barrier": "tutti.barrier",
    "Sendrecv": "tutti.sendrecv",
    "ppermute": "tutti.permute",
    "psum": "tutti.all_reduce",
    "get_rank": _WORLD,
    "Get_rank": _WORLD,
    "rank": _WORLD,
    "get_world_size": "tutti.world().size, or tutti.context().size",
    "Get_size": "tutti.world().size, or tutti.context().size",
    "size": "tutti.world().size, or tutti.context().size",
    "world_size": "tutti.world().size, or tutti.context().size",
    "local_rank": "tutti.context().local_rank",
    "local_size": "tutti.context().local_size",
    "get_local_rank": "tutti.context().local_rank",
    "init_process_group": "tutti.init",
    "Init": "tutti.init",
    "destroy_process_group": "tutti.finalize",
    "shutdown": "tutti.finalize",
    "Finalize": "tutti.finalize",
    "new_group": "tutti.world().subgroup(ranks)",
    "ReduceOp": 'op="sum", op="max" and so on',
    "COMM_WORLD": "tutti.world()",
    "DistributedDataParallel": "tutti.torch.DataParallel",
    "DataParallel": "tutti.torch.DataParallel",
    "DistributedSampler": "tutti.torch.ShardSampler",
    "ZeroOptimizer": "tutti.torch.ZeroOptimizer",
    "ZeroRedundancyOptimizer": "tutti.torch.ZeroOptimizer",
    "DistributedOptimizer": "tutti.average(gradients), or tutti.torch.DataParallel",
}
_INIT_ARGUMENTS = {
    "world_size": "size",
    "nprocs": "size",
    "num_processes": "size",
    "process_id": "rank",
    "master_addr": 'init_method="tcp://host:port"',
    "master_port": 'init_method="tcp://host:port"',
    "coordinator_address": 'init_method="tcp://host:port"',
    "url": "init_method",
}


def name_hint(name: str, known: Iterable[str]) -> str:
    """What to add to "tutti has no NAME": the name it has here, or those that look like it; empty if there is none."""
    if name in _NAMES:
        return f"; it is called {_NAMES[name]} here"
    close = difflib.get_close_matches(name, list(known), n=3)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def init_hint(name: str, known: Iterable[str]) -> str:
    """The same for an argument of init()."""
    if name in _INIT_ARGUMENTS:
        ours = _INIT_ARGUMENTS[name]
        return f"; it is {ours if '=' in ours else ours + '='} here"
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}=?" if close else f"; it takes {', '.join(known)}"
