# nccl_refused.py: ranks that share a GPU and look like one host to NCCL go by the backend cuda, and are told so where they ask for NCCL.
# SPDX-License-Identifier: Apache-2.0
"""A rank of a job: run.py starts it."""

from __future__ import annotations

import os
import sys

os.environ["NCCL_HOSTID"] = "the same for all"

import torch

import tutti

world = tutti.init(timeout=60)
torch.cuda.set_device(0)
x = torch.full((1000,), float(world.rank + 1), device="cuda")
for _ in range(3):  # the first one finds out, the others know
    if float(tutti.all_reduce(x)[0]) != world.size * (world.size + 1) / 2:
        sys.exit("the sum is wrong")
asking = tutti.Group(range(world.size), backend="nccl")
try:
    tutti.all_reduce(x, group=asking)
    sys.exit("two ranks on one GPU used NCCL")
except tutti.Error as error:
    if "share a GPU" not in str(error) or "NCCL_HOSTID" not in str(error):
        sys.exit(f"refused with another reason: {error}")
if float(tutti.all_reduce(x)[0]) != world.size * (world.size + 1) / 2:
    sys.exit("the sum is wrong afterwards")
