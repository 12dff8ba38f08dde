# killed.py: a rank is killed in the middle of calls; the others raise PeerLost, and their GPU goes on.
# SPDX-License-Identifier: Apache-2.0
"""A rank of a job: run.py starts it, with a seed. The victim ends by SIGKILL; the others end with 0 if all is as it should be."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time

import torch

import tutti

seed = int(sys.argv[1])
world = tutti.init(timeout=60)
torch.cuda.set_device(0)
choice = random.Random(seed)
victim = choice.randrange(world.size)
count = choice.choice((2, 3000, 1 << 20, 1 << 24))
delay = choice.uniform(0.0, 0.3)
x = torch.ones(count, device="cuda")
tutti.all_reduce(x)

if world.rank == victim:
    threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
limit = time.monotonic() + 40
try:
    while time.monotonic() < limit:
        y = tutti.all_reduce(x)
        if float(y[0]) != world.size:
            sys.exit(f"rank {world.rank}: {float(y[0])} is not {world.size}")
    sys.exit(f"rank {world.rank}: nobody was lost")
except tutti.PeerLost as error:
    if error.rank != victim:
        sys.exit(f"rank {world.rank}: {error.rank} was lost, not {victim}: {error}")
torch.cuda.synchronize()
if float(x.sum()) != count:
    sys.exit(f"rank {world.rank}: its tensor was changed")
