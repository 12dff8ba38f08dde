# test_torch_processes.py: backend "tutti" under other launchers, and when ranks end without a word.
# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys

import pytest

pytest.importorskip("torch")

ALL_REDUCE = """
import os, torch, torch.distributed as dist
import tutti.torch

def main(*init):
    if init:
        rank, size, method = init
        dist.init_process_group("tutti", init_method=method, rank=rank, world_size=size)
    else:
        dist.init_process_group("tutti")
    total = torch.ones(3)
    dist.all_reduce(total)
    assert total.tolist() == [dist.get_world_size()] * 3
    os.write(1, f"rank {dist.get_rank()} of {dist.get_world_size()}\\n".encode())  # in one piece
    if dist.get_rank() == 0:
        dist.destroy_process_group()  # the others just end
"""


@pytest.fixture
def program(tmp_path):
    def write(text):
        path = tmp_path / "program.py"
        path.write_text(text)
        return str(path)

    return write


def run(environment, *command):
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)


def test_under_torchrun_whose_agent_holds_the_port(program, clean_environment):
    path = program(ALL_REDUCE + "\nmain()\ndist.is_initialized() and dist.destroy_process_group()\nmain()\n")
    ended = run(clean_environment, sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("rank 0 of 2") == 2 and ended.stdout.count("rank 1 of 2") == 2


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_in_processes_of_multiprocessing_with_a_file(start, program, clean_environment, tmp_path):
    text = f"""
if __name__ == "__main__":
    import torch.multiprocessing as mp
    mp.start_processes(main, (2, "file://{tmp_path}/store"), nprocs=2, start_method="{start}")
"""
    ended = run(clean_environment, sys.executable, program(ALL_REDUCE + text))
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.split("\n")) == ["", "rank 0 of 2", "rank 1 of 2"]


DYING = """
import os, signal, sys, torch, torch.distributed as dist, tutti, tutti.torch
rank = int(sys.argv[1])
dist.init_process_group("tutti", init_method=sys.argv[2], rank=rank, world_size=3)
dist.barrier()
if rank == 2:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    dist.all_reduce(torch.ones(3))
except tutti.PeerLost as lost:
    print("lost", lost.rank)
"""


def test_a_rank_that_dies_is_named_by_the_others(program, clean_environment, tmp_path):
    command = [sys.executable, program(DYING)]
    ranks = [
        subprocess.Popen([*command, str(rank), f"file://{tmp_path}/store"], env=clean_environment, stdout=subprocess.PIPE, text=True)
        for rank in range(3)
    ]
    try:
        said = [rank.communicate(timeout=240)[0].strip() for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert said == ["lost 2", "lost 2", ""]
    assert [rank.returncode for rank in ranks] == [0, 0, -9]
