# mpi4jax_tokens_program.py: a program for mpi4jax before 0.8, which hands tokens on.
# SPDX-License-Identifier: Apache-2.0
from mpi4py import MPI
import jax
import jax.numpy as jnp
import mpi4jax

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
assert size == 2


@jax.jit
def step(x):
    x = x + rank
    total, token = mpi4jax.allreduce(x, op=MPI.SUM, comm=comm)
    if rank == 0:
        token = mpi4jax.send(x, dest=1, comm=comm, token=token)
        got, token = mpi4jax.recv(x, source=1, comm=comm, token=token)
    else:
        got, token = mpi4jax.recv(x, source=0, comm=comm, token=token)
        token = mpi4jax.send(x, dest=0, tag=0, comm=comm, token=token)
    mine, token = mpi4jax.sendrecv(got, x, 1 - rank, 1 - rank, comm=comm, token=token)
    return total, got, mine


total, got, mine = step(jnp.zeros((3, 3)))
assert (total == 1).all() and (got == 1 - rank).all() and (mine == rank).all()
print("mpi4jax with tokens: rank", rank)
