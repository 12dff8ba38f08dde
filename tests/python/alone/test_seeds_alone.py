# test_seeds_alone.py: those samples of the first documents that need a start of their own.
# SPDX-License-Identifier: Apache-2.0
import re
import subprocess
import sys

import pytest

GROUP_OF_FOUR = """
import numpy as np
import tutti

world = tutti.init()
group = tutti.Group([2, 3, 5, 7])
assert (group.rank >= 0) == (world.rank in (2, 3, 5, 7)), group.rank
x = np.random.default_rng(world.rank).normal(size=(4, 10))

if group.rank == 0:        # rank 2 of the world
    tutti.send(x, group=group, dst=2)

if group.rank == 2:        # rank 5 of the world
    out = np.empty_like(x)
    out = tutti.recv(out=out, group=group, src=0)
    assert (out == np.random.default_rng(2).normal(size=(4, 10))).all() and not (out == x).any()
    print("received", out.shape)
"""


def test_a_group_of_four_among_eight(run_ranks):
    done = run_ranks(8, GROUP_OF_FOUR)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[5] received (4, 10)\n"


BY_HAND = """
import os
import sys
import tutti

def say(words, rank):
    sys.stdout.write(f"{words} Current rank:  {rank}\\n")  # in one piece: under torchrun the ranks share a pipe

def run(rank, size):
    say("Running function.", rank)
    assert tutti.all_reduce(1) == size

def init_process(rank, size, fn):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    say("Starting init process group.", rank)
    tutti.init(rank=rank, size=size)
    say("Finished init process group.", rank)
    fn(rank, size)

init_process(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), run)
"""


def expected_words(rank):
    return [
        f"Starting init process group. Current rank:  {rank}",
        f"Finished init process group. Current rank:  {rank}",
        f"Running function. Current rank:  {rank}",
    ]


@pytest.mark.parametrize("launcher", ["torchrun", "tuttirun"])
def test_the_same_script_under_launchers(launcher, tuttirun, tmp_path, clean_environment):
    program = tmp_path / "main.py"
    program.write_text(BY_HAND)
    options = ["--standalone", "--nnodes=1", "--nproc-per-node=2"]
    if launcher == "torchrun":
        pytest.importorskip("torch")
        command = [sys.executable, "-m", "torch.distributed.run", *options, program]
    else:
        command = [tuttirun, "--no-prefix", *options, program]
    done = subprocess.run(list(map(str, command)), env=clean_environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        lines = [line for line in done.stdout.splitlines() if line.endswith(f"rank:  {rank}")]
        assert lines == expected_words(rank)


SPAWNED = """
import tutti

def run(rank, size):
    assert tutti.all_reduce(rank) == 1
    return f"rank {rank} of {size}"

def init_process(fn):
    world = tutti.init()
    return fn(world.rank, world.size)

if __name__ == "__main__":
    print(tutti.spawn(init_process, nprocs=2, args=(run,)))
"""


def test_processes_spawned_from_a_script(tmp_path, clean_environment):
    program = tmp_path / "main.py"
    program.write_text(SPAWNED)
    done = subprocess.run([sys.executable, program], env=clean_environment, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['rank 0 of 2', 'rank 1 of 2']\n"


AT_A_BREAKPOINT = """
import numpy as np
import tutti

world = tutti.init()
tensor = np.zeros(1)
tutti.breakpoint(0)
if world.rank == 0:
    tensor += 1
    tutti.send(tensor, dst=1)
    print("My rank: ", world.rank)
else:
    tutti.recv(out=tensor, src=0)
print("Rank ", world.rank, " has data ", tensor[0])
"""


def test_a_breakpoint_on_rank_0(tuttirun, tmp_path, clean_environment):
    program = tmp_path / "main.py"
    program.write_text(AT_A_BREAKPOINT)
    command = [tuttirun, "-n", "2", "--timeout", "60s", sys.executable, program]
    done = subprocess.run(
        list(map(str, command)),
        env=clean_environment,
        input="p tensor[0] + 41\nn\nn\nc\n",
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    assert "41.0" in done.stdout and "tensor += 1" in done.stdout
    assert "[0] My rank:  0" in done.stdout or "My rank:  0" in done.stdout
    assert re.search(r"Rank  0  has data  1.0", done.stdout) and re.search(r"Rank  1  has data  1.0", done.stdout)
