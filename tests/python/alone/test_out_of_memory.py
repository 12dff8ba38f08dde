# test_out_of_memory.py: a rank without memory for its result says so; the others do not wait for it, and the job goes on where it can.
# SPDX-License-Identifier: Apache-2.0
import pytest

PROGRAM = """
import resource
import sys

import numpy as np
import tutti

world = tutti.init(timeout=40)
count = 150_000_000  # more than malloc finds in the arena of another thread
mine = np.zeros(count, np.uint8)
if world.rank == 1:
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + count // 2,) * 2)
tutti.barrier()
try:
    {call}
    print("done")
except (MemoryError, tutti.Error) as error:
    print(type(error).__name__, error)
try:
    print("afterwards", tutti.all_reduce(1))
except tutti.Error as error:
    print("afterwards", type(error).__name__)
"""


@pytest.mark.parametrize("backend", ["shm", "native"])
@pytest.mark.parametrize("call", ["tutti.all_reduce(mine)", "tutti.all_gather(mine)", "tutti.all_reduce([mine, mine[:10]])"])
def test_a_result_without_memory_ends_the_call_on_all_ranks_and_the_group_goes_on(run_ranks, call, backend):
    done = run_ranks(2, PROGRAM.replace("{call}", call), env={"TUTTI_BACKEND": backend})
    out = done.stdout + done.stderr
    assert "[1] MemoryError" in out, out
    assert "[0] Aborted" in out and "rank 1 (host" in out and "MemoryError: " in out, out
    assert out.count("afterwards 2") == 2, out


@pytest.mark.parametrize("backend", ["shm", "native"])
def test_an_array_that_is_learned_and_for_which_there_is_no_memory_is_named(run_ranks, backend):
    call = "tutti.broadcast(mine if world.rank == 0 else None)"
    done = run_ranks(2, PROGRAM.replace("{call}", call), env={"TUTTI_BACKEND": backend})
    out = done.stdout + done.stderr
    assert out.count("on rank 1: there is no memory for an array of 150000000 bytes") >= 2, out


@pytest.mark.parametrize("backend", ["shm", "native"])
def test_a_message_for_which_there_is_no_memory_fails_alone(run_ranks, backend):
    call = "tutti.send(mine, 1) if world.rank == 0 else tutti.recv(0)"
    done = run_ranks(2, PROGRAM.replace("{call}", call), env={"TUTTI_BACKEND": backend})
    out = done.stdout + done.stderr
    assert "there is no memory for an array of 150000000 bytes" in out and out.count("afterwards 2") == 2, out
