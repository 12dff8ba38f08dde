# test_shm_limit.py: too little shared memory for the ranks' messages is found out at init, by all ranks together.
# SPDX-License-Identifier: Apache-2.0
import time

import pytest

WORKS = """
import numpy as np
import tutti

world = tutti.init(timeout=30)
total = tutti.all_reduce(np.full(1000, world.rank + 1.0))
assert (total == world.size * (world.size + 1) / 2).all()
tutti.send(np.arange(100000.0), 1) if world.rank == 0 else None
if world.rank == 1:
    assert tutti.recv(0)[-1] == 99999
print("right")
"""

REFUSED = """
import tutti

try:
    tutti.init("shm", timeout=30)
except tutti.Unsupported as error:
    assert "TUTTI_SHM_LIMIT" in str(error), error
    print("refused")
"""


@pytest.mark.parametrize("ranks, limit", [(2, "4K"), (2, "100K"), (3, "150K")])
def test_ranks_without_room_for_messages_go_over_tcp(run_ranks, ranks, limit):
    begin = time.monotonic()
    done = run_ranks(ranks, WORKS, env={"TUTTI_SHM_LIMIT": limit})
    assert done.returncode == 0 and done.stdout.count("right") == ranks, done.stdout + done.stderr
    assert "do not share memory" in done.stderr and "TUTTI_SHM_LIMIT" in done.stderr, done.stderr
    assert time.monotonic() - begin < 25, "nobody waits for a deadline"


def test_with_the_backend_shm_every_rank_raises_at_once(run_ranks):
    begin = time.monotonic()
    done = run_ranks(2, REFUSED, env={"TUTTI_SHM_LIMIT": "64K"})
    assert done.returncode == 0 and done.stdout.count("refused") == 2, done.stdout + done.stderr
    assert time.monotonic() - begin < 25, "nobody waits for a deadline"
