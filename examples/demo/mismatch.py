# mismatch.py: rank 1 has lost a sample, so the ranks' arrays differ: tuttirun -n 2 mismatch.py
# SPDX-License-Identifier: Apache-2.0
import numpy as np

import tutti

world = tutti.init()
scores = np.ones(1000 if world.rank == 0 else 999, np.float32)
try:
    tutti.all_reduce(scores)
except tutti.Mismatch as error:  # on every rank, before anything was added up
    print(f"Mismatch: {error}", flush=True)
