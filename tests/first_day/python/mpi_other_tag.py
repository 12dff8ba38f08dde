# mpi_other_tag.py: a receive that takes tag 0 where another one was sent
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

comm = tutti.init()
if comm.rank == 0:
    comm.send("data", 1, tag=11)
    comm.barrier()
else:
    try:
        comm.recv(0, timeout=0.5)
    except tutti.Timeout as error:
        print(str(error).partition("; ")[2].partition(" (called")[0])
    print(comm.recv(0, tag=None))
    comm.barrier()

# prints:
#   messages that it does not take have come: tag 11 from rank 0
#   data
