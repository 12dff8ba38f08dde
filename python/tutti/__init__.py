# __init__.py: the names people use. Frameworks are imported when the first of their arrays is seen, not here.
# SPDX-License-Identifier: Apache-2.0
"""Tutti ("all together"): process groups, collectives and parallel training for NumPy, PyTorch, JAX and TensorFlow.

    import tutti, numpy as np

    world = tutti.init()
    y = tutti.all_reduce(np.ones(4))

Start it on four processes with ``tuttirun -n 4 program.py``.
"""
from __future__ import annotations

import importlib
from typing import Any

from . import _torch_compile
from ._errors import (Aborted, AuthenticationError, Error, InvalidArgument, Mismatch, PeerLost, RendezvousError, Timeout,
                      Unsupported)
from ._lifecycle import before_finalize, connector, context, finalize, init, is_initialized, world
from ._native import Array, Group, Op, Work, premul
from ._native import version as __version__
from ._verbs import (all_gather, all_reduce, all_to_all, barrier, broadcast, exscan, gather, irecv, isend, permute, recv, reduce,
                     reduce_scatter, scan, scatter, send, sendrecv, verbs)

# Names that bring more with them than a small program should load: from which module, on first use.
_LATER = {
    "broadcast_object": "_objects",
    "all_gather_object": "_objects",
    "gather_object": "_objects",
    "scatter_object": "_objects",
    "pmap": "_pmap",
    "prepare": "_prepare",
    "spawn": "_spawn",
    "breakpoint": "_debug",
    "Mesh": "_mesh",
    "tie": "_tie",
    "empty": "_empty",
    "average": "_average",
    "shard_indices": "_data",
    "batches": "_data",
}
_SUBMODULES = ("torch", "jax", "tensorflow", "model_parallel", "checkpoint", "zero")
# What `from tutti import *` leaves out: a name of Python's own, and modules, which would load frameworks and take the
# place of `torch` or `jax` in the program that asks for it.
_NOT_BY_STAR = {"breakpoint", *_SUBMODULES}

__all__ = [
    "Aborted", "Array", "AuthenticationError", "Error", "Group", "InvalidArgument", "Mismatch", "Op", "PeerLost",
    "RendezvousError", "Timeout", "Unsupported", "Work", "all_gather", "all_reduce", "all_to_all", "barrier", "before_finalize",
    "broadcast", "connector", "context", "exscan", "finalize", "gather", "init", "irecv", "is_initialized", "isend", "permute",
    "premul", "recv", "reduce", "reduce_scatter", "scan", "scatter", "send", "sendrecv", "verbs", "world",
    *(name for name in _LATER if name not in _NOT_BY_STAR),
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        value = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    elif name in _SUBMODULES:
        value = importlib.import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"tutti has no {name}" + _hint(name))
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    if name.startswith("_"):  # Python's own questions, which expect no advice
        return ""
    from ._hints import name_hint

    return name_hint(name, __dir__())


def __dir__() -> list[str]:
    return sorted({*__all__, *_NOT_BY_STAR})


_torch_compile.install()
