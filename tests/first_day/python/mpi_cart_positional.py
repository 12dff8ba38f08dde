# mpi_cart_positional.py: MPI_Cart_create(comm, 2, dims, …)
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

tutti.init()
tutti.Mesh(2, 1)

# raises on every rank: tutti.InvalidArgument: Mesh: axes have names here: Mesh(y=2, x=1); a group of ranks comes first, without a name
