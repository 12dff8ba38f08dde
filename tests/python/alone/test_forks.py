# test_forks.py: what training scripts start beside a job: loaders that fork, pools and programs, with calls in flight.
# SPDX-License-Identifier: Apache-2.0
#
# A call is started before, and waited for after, each thing that forks: the child has the parent's works, threads' locks,
# sockets and mappings, and must neither use nor end any of them. What the ranks get has to be right all along.
import os

import pytest

RUNS = 50 if os.environ.get("TUTTI_SOAK") else 2

TRAINING = """
import multiprocessing, os, subprocess, sys
import numpy as np
import tutti

world = tutti.init(timeout=60)

class in_flight:
    # Starts a reduction and a message around the ranks; both are right at the end.
    def __enter__(self):
        self.large = np.full(1 << 18, world.rank + 1.0)
        self.work = tutti.all_reduce(self.large, out=self.large, async_op=True)
        self.heard = np.empty(5)
        self.receipt = tutti.irecv(out=self.heard, src=(world.rank - 1) % world.size)
        self.sent = tutti.isend(np.full(5, float(world.rank)), dst=(world.rank + 1) % world.size)

    def __exit__(self, *_):
        for work in (self.work, self.receipt, self.sent):
            work.wait()
        assert (self.large == world.size * (world.size + 1) / 2).all()
        assert (self.heard == (world.rank - 1) % world.size).all()

def square(x):
    return x * x

def loader(step):
    import torch
    data = torch.utils.data.TensorDataset(torch.arange(32.0))
    batches = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context="fork", timeout=60)
    total = 0.0
    for (batch,) in batches:
        with in_flight():
            total += float(batch.sum())
    assert total == 496.0

def pool(step):
    with in_flight(), multiprocessing.get_context("fork").Pool(2) as workers:
        assert workers.map(square, range(20)) == [x * x for x in range(20)]
        workers.close()
        workers.join()

def program(step):
    with in_flight():
        done = subprocess.run([sys.executable, "-c", f"print({step})"], capture_output=True, text=True, timeout=60)
        assert done.stdout.split() == [str(step)] and done.returncode == 0, done

for step in range(3):
    globals()[sys.argv[1]](step)
    assert tutti.all_reduce(1) == world.size
tutti.finalize()
print("trained")
"""


@pytest.mark.deadline(1500 if RUNS > 2 else 240)
@pytest.mark.parametrize("backend", ["auto", "native"])
@pytest.mark.parametrize("what", ["loader", "pool", "program"])
def test_a_training_loop_with_calls_in_flight_may_fork(run_ranks, what, backend):
    if what == "loader":
        pytest.importorskip("torch")
    for run in range(RUNS):
        done = run_ranks(2, TRAINING, what, timeout=90, env={"TUTTI_BACKEND": backend})
        assert done.returncode == 0, f"run {run}: {done.stdout}\n{done.stderr}"
        assert done.stdout.count("trained") == 2, f"run {run}: {done.stdout}"
        assert "behind" not in done.stderr, done.stderr  # a process that outlived its rank
