# test_shrink.py: ranks that lose another one shrink their group and train on, with the numbers of those that are left.
# SPDX-License-Identifier: Apache-2.0
PROGRAM = """
import os, signal
import numpy as np
import tutti

world = tutti.init()
group, weights, step = world, np.zeros(4), 0
while step < 12:
    if world.rank == 1 and step == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        gradient = group.all_reduce(np.full(4, float(world.rank)), "mean")
        weights -= 0.1 * gradient
        step += 1
    except tutti.PeerLost as lost:
        assert lost.rank == 1 and "was killed by signal 9, SIGKILL" in str(lost), lost
        group = group.shrink(timeout=30)
        # Some ranks may have ended a step that others have not: all go on from the one that every rank has ended, as from
        # a checkpoint.
        step = int(group.all_reduce(np.array([step]), "min")[0])
        weights = np.full(4, -0.1 * step)
assert group.size == 2 and group.rank == (0 if world.rank == 0 else 1), (group.size, group.rank)
print("rank", world.rank, "of", group.size, "ends with", round(float(weights[0]), 6))
"""


def test_survivors_go_on_with_the_right_numbers(run_ranks):
    # The mean of ranks 0, 1 and 2 is 1, and so is that of 0 and 2: every step takes 0.1 off.
    done = run_ranks(3, PROGRAM, options=["--keep-going"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(line.split("] ")[1] for line in done.stdout.splitlines()) == [
        "rank 0 of 2 ends with -1.2",
        "rank 2 of 2 ends with -1.2",
    ]
