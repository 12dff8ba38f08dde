# __init__.py: the names people use. Frameworks are imported when the first of their arrays is seen, not here.
# SPDX-License-Identifier: Apache-2.0
"""Tutti ("all together"): process groups, collectives and parallel training for NumPy, PyTorch, JAX and TensorFlow.

    import tutti, numpy as np

    world = tutti.init()
    y = tutti.all_reduce(np.ones(4))

Start it on four processes with ``tuttirun -n 4 program.py``.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from ._calls import group as _group
from ._calls import torch_compile as _torch_compile
from ._calls.reductions import premul
from ._calls.verbs import OBJECT_VERBS as _OBJECT_VERBS
from ._calls.verbs import (all_gather, all_reduce, all_to_all, barrier, broadcast, exscan, gather, iprobe, irecv, isend, permute,
                           probe, recv, reduce, reduce_scatter, scan, scatter, send, sendrecv, verbs)
from ._calls.works import Work, wait_all, wait_any
from ._errors import (Aborted, AuthenticationError, Error, InvalidArgument, Mismatch, PeerLost, RendezvousError, Timeout,
                      Unsupported)
from ._messages.messages import Message, nobody
from ._native import Array, Group, Op
from ._native import version as __version__
from ._process.later import names_later as _names_later
from ._process.lifecycle import (before_finalize, connector, context, finalize, init, is_initialized, local_rank, rank, size,
                                 world)
from ._process.watch import dump_calls, stats

# Names that bring more with them than a small program should load: from which module, on first use.
_LATER = {
    **_OBJECT_VERBS,
    "pmap": "_training.pmap",
    "prepare": "_calls.prepare",
    "spawn": "_process.spawn",
    "breakpoint": "_process.debug",
    "Mesh": "_training.mesh",
    "tie": "_calls.tie",
    "empty": "_arrays.empty",
    "average": "_training.average",
    "shard_indices": "_training.data",
    "batches": "_training.data",
    "seed": "_process.seed",
    "batch_statistics": "_training.statistics",
    "store": "_process.store",
    "Store": "_process.store",
    "load_ipython_extension": "_process.notebook",
    "unload_ipython_extension": "_process.notebook",
}
_SUBMODULES = ("torch", "jax", "tensorflow", "model_parallel", "checkpoint", "zero", "elastic", "ray", "dask")
# What `from tutti import *` leaves out: a name of Python's own, and modules, which would load frameworks and take the
# place of `torch` or `jax` in the program that asks for it.
_NOT_BY_STAR = {"breakpoint", *_SUBMODULES}

__all__ = [
    "Aborted", "Array", "AuthenticationError", "Error", "Group", "InvalidArgument", "Mesh", "Message", "Mismatch", "Op",
    "PeerLost", "RendezvousError", "Store", "Timeout", "Unsupported", "Work", "all_gather", "all_gather_object",
    "all_reduce", "all_to_all", "average", "barrier", "batch_statistics", "batches", "before_finalize", "broadcast",
    "broadcast_object", "connector", "context", "dump_calls", "empty", "exscan", "finalize", "gather", "gather_object", "init", "iprobe",
    "irecv", "is_initialized", "isend", "local_rank", "nobody", "permute", "pmap", "premul", "prepare", "probe", "rank", "recv",
    "recv_object", "reduce", "reduce_scatter", "scan", "scatter", "scatter_object", "seed", "send", "send_object",
    "sendrecv", "shard_indices", "size", "spawn", "stats", "store", "tie", "verbs", "wait_all",
    "wait_any", "world",
]


if TYPE_CHECKING:  # without __getattr__, so that a name that does not exist is an error for checkers
    from . import checkpoint as checkpoint
    from . import dask as dask
    from . import elastic as elastic
    from . import jax as jax
    from . import model_parallel as model_parallel
    from . import ray as ray
    from . import tensorflow as tensorflow
    from . import torch as torch
    from . import zero as zero
    from ._training.average import average
    from ._training.data import batches, shard_indices
    from ._process.debug import breakpoint as breakpoint
    from ._arrays.empty import empty
    from ._training.mesh import Mesh
    from ._objects.verbs import all_gather_object, broadcast_object, gather_object, scatter_object
    from ._calls.prepare import prepare
    from ._training.pmap import pmap
    from ._process.seed import seed
    from ._process.spawn import spawn
    from ._training.statistics import batch_statistics
    from ._process.store import Store, store
    from ._calls.tie import tie
    from ._messages.trees import recv_object, send_object
else:
    __getattr__, __dir__ = _names_later(__name__, {**_LATER, **{name: name for name in _SUBMODULES}}, {*__all__, *_NOT_BY_STAR})

_group.install()
_torch_compile.install()
