# mpi_receive_buffer.py: comm.Allreduce(send, receive)
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import numpy as np

import tutti

comm = tutti.init()
send, receive = np.ones(3), np.empty(3)
comm.all_reduce(send, receive)

# raises on every rank: tutti.InvalidArgument: all_reduce: op= is an array; results come back, y = tutti.all_reduce(x), or go into an array given as out=
