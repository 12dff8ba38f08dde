# tokens.py: mpi4jax's names of before 0.8, where every call takes and gives a token: from tutti.compat.mpi4jax import tokens as mpi4jax.
# SPDX-License-Identifier: Apache-2.0
"""The tokens decide nothing here: calls are made in the order of the program."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from .. import mpi4jax
from . import MPI

_POSITIONS = {"send": ("tag",), "recv": ("tag",), "sendrecv": ("sendtag", "recvtag")}  # which were not keywords only then


def _with_token(call: Callable[..., Any], gives: bool = True) -> Callable[..., Any]:
    required = [name for name in call.__annotations__ if name not in ("comm", "status", "return", "tag", "sendtag", "recvtag")]
    order = [*required, *_POSITIONS.get(call.__name__, ())]

    @functools.wraps(call)
    def run(*args: Any, comm: Any = None, token: Any = None, **options: Any) -> Any:
        result = call(**dict(zip(order, args)), comm=comm, **options)
        token = jax.lax.create_token() if token is None else token
        return (result, token) if gives else token

    return run


_GIVING = ("allgather", "allreduce", "alltoall", "bcast", "gather", "recv", "reduce", "scan", "scatter", "sendrecv")
allgather, allreduce, alltoall, bcast, gather, recv, reduce, scan, scatter, sendrecv = (
    _with_token(getattr(mpi4jax, name)) for name in _GIVING
)
barrier, send = (_with_token(call, gives=False) for call in (mpi4jax.barrier, mpi4jax.send))

__all__ = [
    "MPI", "allgather", "allreduce", "alltoall", "barrier", "bcast", "gather", "recv", "reduce", "scan", "scatter", "send", "sendrecv",
]
