# mpi_odd_even_sort.py: odd-even transposition with Sendrecv
# SPDX-License-Identifier: Apache-2.0
# ranks: 4
import numpy as np

import tutti

comm = tutti.init()
mine = np.sort((7 * np.arange(3) + 11 * comm.rank + 5) % 13)
for step in range(comm.size):
    peer = comm.rank + (1 if (comm.rank + step) % 2 == 0 else -1)
    if not 0 <= peer < comm.size:
        continue
    theirs = comm.sendrecv(mine, dst=peer, src=peer)
    both = np.sort(np.concatenate([mine, theirs]))
    mine = both[:3] if comm.rank < peer else both[3:]
print(comm.rank, mine.tolist())

# prints:
#   0 [0, 1, 2]
#   1 [3, 4, 5]
#   2 [6, 6, 8]
#   3 [10, 12, 12]
