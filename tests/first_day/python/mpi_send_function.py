# mpi_send_function.py: mpi4py pickles whatever comes; here pickles are asked for
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

comm = tutti.init()
if comm.rank == 0:
    comm.send(print, 1)
else:
    comm.recv(0)

# raises on rank 0: tutti.InvalidArgument: send: the object is of type builtin_function_or_method, …send_object with allow_pickle=True…
# raises on rank 1: tutti.PeerLost: …rank 0 … left the job without sending it…
