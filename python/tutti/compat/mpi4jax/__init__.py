# __init__.py: mpi4jax's names: ``import tutti.compat.mpi4jax as mpi4jax``.
# SPDX-License-Identifier: Apache-2.0
"""The functions of mpi4jax 0.8 and later, inside and outside of ``jax.jit``; ``from tutti.compat.mpi4jax import tokens as mpi4jax``
has those of earlier releases, which hand tokens on. ``comm`` is a communicator of mpi4py in a job of mpirun, or of ``MPI``
here, which stands for mpi4py's under any launcher: ``from tutti.compat.mpi4jax import MPI``. Calls are made in the order
of the program: no token is needed for that."""
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

from ... import adapters
from ..._calls import verbs
from ..._errors import InvalidArgument, Unsupported
from ..._messages.messages import nobody
from ._mpi import MPI, Status, group_of, note_status, op_of, rank_of
from ._sum import sum_over

__all__ = [
    "MPI", "Status", "allgather", "allreduce", "alltoall", "barrier", "bcast", "gather", "has_cuda_support", "has_sycl_support", "recv",
    "reduce", "scan", "scatter", "send", "sendrecv",
]


def has_cuda_support() -> bool:
    return False


has_sycl_support = has_cuda_support


def _check_rows(verb: str, x: Any, group: Any) -> None:
    if x.ndim == 0 or x.shape[0] != group.size:
        raise InvalidArgument(f"mpi4jax: {verb} input must have shape (nproc, ...): one row for each of {group.size} ranks, not {x.shape}")


def _as_array(x: Any) -> Any:
    return x if adapters.is_traced(jnp.asarray(x)) else jnp.asarray(x)


def allreduce(x: Any, op: Any, *, comm: Any = None) -> Any:
    """The reduction over all ranks, on every rank. As in mpi4jax, the gradient of a sum goes back as it is: all ranks have the
    same loss, and it counts once. (tutti.all_reduce differentiates the sum of all ranks' losses.)"""
    group, name = group_of(comm), op_of(op)
    return sum_over(_as_array(x), group) if name == "sum" else verbs.all_reduce(_as_array(x), op=name, group=group)


def allgather(x: Any, *, comm: Any = None) -> Any:
    """All ranks' arrays, stacked on a new first axis."""
    return verbs.all_gather(_as_array(x), axis=None, group=group_of(comm))


def alltoall(x: Any, *, comm: Any = None) -> Any:
    """Row i goes to rank i; row j of the result came from rank j."""
    group, x = group_of(comm), _as_array(x)
    _check_rows("Alltoall", x, group)
    return verbs.all_to_all(x, group=group)


def barrier(*, comm: Any = None) -> None:
    """Waits for all ranks."""
    verbs.barrier(group=group_of(comm))


def bcast(x: Any, root: int, *, comm: Any = None) -> Any:
    """The root's array, on every rank."""
    return verbs.broadcast(_as_array(x), root=root, group=group_of(comm))


def gather(x: Any, root: int, *, comm: Any = None) -> Any:
    """On the root all ranks' arrays, stacked; on the others the input."""
    return verbs.gather(_as_array(x), root=root, axis=None, group=group_of(comm))


def reduce(x: Any, op: Any, root: int, *, comm: Any = None) -> Any:
    """On the root the reduction; on the others the input."""
    return verbs.reduce(_as_array(x), root=root, op=op_of(op), group=group_of(comm))


def scan(x: Any, op: Any, *, comm: Any = None) -> Any:
    """The reduction over the ranks up to this one."""
    return verbs.scan(_as_array(x), op=op_of(op), group=group_of(comm))


def scatter(x: Any, root: int, *, comm: Any = None) -> Any:
    """Row i of the root's array, on rank i. The others' array tells the shape of the result only."""
    group, x = group_of(comm), _as_array(x)
    if group.rank == root:
        _check_rows("Scatter", x, group)
    else:
        x = jnp.zeros((group.size, *x.shape), x.dtype)
    return verbs.scatter(x, root=root, axis=None, group=group)


def send(x: Any, dest: int, *, tag: int = 0, comm: Any = None) -> None:
    """Sends an array to a rank."""
    group, x = group_of(comm), _as_array(x)

    def now(value: Any) -> None:
        verbs.send(np.asarray(value), rank_of(dest), tag, group=group)

    if adapters.is_traced(x):
        io_callback(now, None, x, ordered=True)
    else:
        now(x)


def recv(x: Any, source: int = -1, *, tag: int = -1, comm: Any = None, status: Any = None) -> Any:
    """The array that a rank sent; `x` tells its shape and dtype and stays as it is. Any source and any tag unless given."""
    group = group_of(comm)
    shape = jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x))

    def now() -> Any:
        out = np.empty(shape.shape, shape.dtype)
        work = verbs.recv(None if source < 0 else source, None if tag < 0 else tag, out=out, group=group, async_op=True)
        work.wait()
        note_status(status, work.source, work.tag, out.nbytes)
        return out

    if adapters.is_traced(jnp.asarray(x)) or isinstance(jnp.zeros(()), jax.core.Tracer):
        return io_callback(now, shape, ordered=True)
    return jnp.asarray(now())


def sendrecv(
    sendbuf: Any, recvbuf: Any, source: int, dest: int, *, sendtag: int = 0, recvtag: int = -1, comm: Any = None, status: Any = None
) -> Any:
    """Sends one array and receives another; with gradients, which go the other way. Where source is MPI's PROC_NULL, the result
    is `recvbuf`."""
    if recvtag not in (-1, sendtag):
        raise Unsupported(f"mpi4jax: sendrecv with sendtag={sendtag} and recvtag={recvtag}; give both messages one tag")
    group, out = group_of(comm), _as_array(recvbuf)
    got = verbs.sendrecv(_as_array(sendbuf), rank_of(dest), rank_of(source), tag=sendtag, group=group)
    note_status(status, source, sendtag, out.nbytes)
    return out if rank_of(source) is nobody else got.reshape(out.shape)
