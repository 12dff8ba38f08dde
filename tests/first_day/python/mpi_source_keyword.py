# mpi_source_keyword.py: comm.recv(source=0, tag=11)
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

comm = tutti.init()
comm.recv(source=0, tag=11)

# raises on every rank: tutti.InvalidArgument: recv: there is no source=; here it is src=
