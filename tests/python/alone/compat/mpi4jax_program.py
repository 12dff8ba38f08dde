# mpi4jax_program.py: a program for mpi4jax 0.8 and later: every function, inside and outside of jit, and a gradient.
# SPDX-License-Identifier: Apache-2.0
from mpi4py import MPI
import jax
import jax.numpy as jnp
import mpi4jax

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
assert size == 2
other = 1 - rank


@jax.jit
def everything(x):
    x = x + rank
    return {
        "allreduce": mpi4jax.allreduce(x, op=MPI.SUM, comm=comm),
        "max": mpi4jax.allreduce(x, op=MPI.MAX, comm=comm),
        "allgather": mpi4jax.allgather(x, comm=comm),
        "alltoall": mpi4jax.alltoall(x, comm=comm),
        "bcast": mpi4jax.bcast(x, 1, comm=comm),
        "gather": mpi4jax.gather(x, 0, comm=comm),
        "reduce": mpi4jax.reduce(x, MPI.SUM, 0, comm=comm),
        "scan": mpi4jax.scan(x, MPI.SUM, comm=comm),
        "sendrecv": mpi4jax.sendrecv(x, jnp.zeros_like(x), source=other, dest=other, comm=comm),
    }


a = jnp.zeros((2, 3))
for found in (everything(a), everything.__wrapped__(a)):
    assert (found["allreduce"] == 1).all() and (found["max"] == 1).all()
    assert found["allgather"].shape == (2, 2, 3) and (found["allgather"][1] == 1).all()
    assert (found["alltoall"][0] == 0).all() and (found["alltoall"][1] == 1).all()
    assert (found["bcast"] == 1).all()
    assert found["gather"].shape == ((2, 2, 3) if rank == 0 else (2, 3))
    assert (found["reduce"] == 1).all()
    assert (found["scan"] == rank).all()
    assert (found["sendrecv"] == other).all()


@jax.jit
def exchange(x):
    x = x + rank
    if rank == 0:
        mpi4jax.send(x, dest=1, comm=comm)
        return mpi4jax.recv(x, source=1, comm=comm)
    got = mpi4jax.recv(x, source=0, comm=comm)
    mpi4jax.send(x, dest=0, comm=comm)
    return got


for _ in range(3):
    assert (exchange(a) == other).all()
assert (exchange.__wrapped__(a) == other).all()
rows = jnp.arange(6.0).reshape(2, 3) if rank == 0 else jnp.zeros(3)
assert mpi4jax.scatter(rows, 0, comm=comm).tolist() == [3 * rank, 3 * rank + 1, 3 * rank + 2]
mpi4jax.barrier(comm=comm)
half = comm.Split(rank)
assert half.Get_size() == 1 and (mpi4jax.allreduce(a + 5, MPI.SUM, comm=half) == 5).all()

# The gradient of a sum goes back as it is.
value, gradient = jax.value_and_grad(lambda x: (mpi4jax.allreduce(x, op=MPI.SUM, comm=comm) ** 2).sum())(jnp.full(3, 1.0 + rank))
assert value == 27 and gradient.tolist() == [6, 6, 6], (value, gradient)
print("mpi4jax: rank", rank)
