# tokens.py: mpi4jax's names of before 0.8, where every call takes and gives a token: from tutti.compat.mpi4jax import tokens as mpi4jax.
# SPDX-License-Identifier: Apache-2.0
"""The tokens decide nothing here: calls are made in the order of the program."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from . import MPI
from . import allgather as _allgather
from . import allreduce as _allreduce
from . import alltoall as _alltoall
from . import barrier as _barrier
from . import bcast as _bcast
from . import gather as _gather
from . import recv as _recv
from . import reduce as _reduce
from . import scan as _scan
from . import scatter as _scatter
from . import send as _send
from . import sendrecv as _sendrecv

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


allgather = _with_token(_allgather)
allreduce = _with_token(_allreduce)
alltoall = _with_token(_alltoall)
barrier = _with_token(_barrier, gives=False)
bcast = _with_token(_bcast)
gather = _with_token(_gather)
recv = _with_token(_recv)
reduce = _with_token(_reduce)
scan = _with_token(_scan)
scatter = _with_token(_scatter)
send = _with_token(_send, gives=False)
sendrecv = _with_token(_sendrecv)

__all__ = [
    "MPI", "allgather", "allreduce", "alltoall", "barrier", "bcast", "gather", "recv", "reduce", "scan", "scatter", "send", "sendrecv",
]
