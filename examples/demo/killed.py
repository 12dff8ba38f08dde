# killed.py: rank 1 is killed in the middle of the work; rank 0 learns who it was, and goes on: tuttirun -n 2 --keep-going killed.py
# SPDX-License-Identifier: Apache-2.0
import os
import signal

import numpy as np

import tutti

group = tutti.init()
step = 0
while step < 2000:
    if group.rank == 1 and step == 1000:
        os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory runs out
    try:
        group.all_reduce(np.full(100_000, step, np.float32))
        step += 1
    except tutti.PeerLost as lost:
        print(f"PeerLost: {lost}", flush=True)
        group = group.shrink()  # those who are left, as a group that works
        print(f"goes on with step {step} on {group.size} rank", flush=True)
print(f"{step} steps done", flush=True)
