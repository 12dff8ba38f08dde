# messages.py: an array goes from rank 0 to rank 1, and a token around all ranks.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

import tutti

world = tutti.init()
rank, size = world.rank, world.size

if rank == 0:
    x = np.arange(3.0)
    tutti.send(x, dst=1)                              # returns when x is ours again
elif rank == 1:
    print("rank 1 got", tutti.recv(0))                # the message knows its shape and dtype

left, right = (rank - 1) % size, (rank + 1) % size
coming = tutti.irecv(left)                            # at once; the message may come later
going = tutti.isend(np.array([rank * 10]), right)     # at once; leave the array alone until wait()
token = coming.wait(timeout=30)
going.wait(timeout=30)
print(f"rank {rank} got {token} from rank {coming.source}")

same = tutti.sendrecv(np.array([rank * 10]), dst=right, src=left)   # both in one call
assert (same == token).all()
