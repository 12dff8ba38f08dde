# nccl_reused.py: a group keeps its communicator from call to call; one that is broken has no effect on others; deadlines hold in NCCL's calls.
# SPDX-License-Identifier: Apache-2.0
"""A rank of a job: run.py starts it, with TUTTI_BACKEND=nccl."""

from __future__ import annotations

import sys
import time

import torch

import tutti

world = tutti.init(timeout=60)
torch.cuda.set_device(0)
x = torch.ones(1 << 20, device="cuda")
part = tutti.Group(range(world.size))
begin = time.monotonic()
tutti.all_reduce(x)
first = time.monotonic() - begin
begin = time.monotonic()
for _ in range(20):
    tutti.all_reduce(x)
each = (time.monotonic() - begin) / 20
if each > first:
    sys.exit(f"the first call took {first:.3f} s, and each of the others {each:.3f} s: they connect anew")
try:  # a rank that makes no call: the other gives up at its deadline, and its communicator with it
    tutti.all_reduce(x, group=part)
    if world.rank == 0:
        tutti.all_reduce(x, group=part, timeout=1)
        sys.exit("a call that a rank did not make came to its end")
    else:
        time.sleep(3)
        tutti.all_reduce(x, group=part)
        sys.exit("a call in a broken group came to its end")
except tutti.Error as error:
    if world.rank == 0 and not isinstance(error, tutti.Timeout):
        sys.exit(f"not a timeout: {error!r}")
torch.cuda.synchronize()
if float(tutti.all_reduce(x)[0]) != world.size:
    sys.exit("the world's communicator was broken, too")
