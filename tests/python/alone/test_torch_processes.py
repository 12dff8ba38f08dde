# test_torch_processes.py: backend "tutti" under torchrun, in forked processes, and when ranks end without a word.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import signal
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

# Forked, so that torch is imported once.
FORKED = """
if __name__ == "__main__":
    import torch.multiprocessing as mp
    mp.start_processes(main, (SIZE, "file://STORE"), nprocs=SIZE, start_method="fork")
"""

DYING = """
import os, torch, torch.distributed as dist
import torch._dynamo  # which DistributedDataParallel would import, in each of the ranks
import tutti, tutti.torch

def main(rank, size, method):
    dist.init_process_group("tutti", init_method=method, rank=rank, world_size=size)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    if rank == 2:
        os._exit(0)  # without a goodbye; any other status, and multiprocessing would end the others
    errors = []
    for call in (lambda: model(torch.ones(1, 4)).sum().backward(), lambda: dist.all_reduce(torch.ones(3))):
        try:
            call()
        except RuntimeError as error:
            errors.append(f"{getattr(error, 'rank', 'no rank')} {'rank 2' in str(error)}")
    os.write(1, f"{errors}\\n".encode())
"""


@pytest.fixture
def run_program(tmp_path, clean_environment):
    """Runs a program, forked as `size` ranks or started by the words before its name."""

    def run(text, *words, size=None):
        if size is not None:
            text += FORKED.replace("SIZE", str(size)).replace("STORE", f"{tmp_path}/store")
        path = tmp_path / "program.py"
        path.write_text(text)
        command = [sys.executable, *words, str(path)]
        pipe = subprocess.PIPE
        program = subprocess.Popen(
            command, env=clean_environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
        )
        try:
            output, errors = program.communicate(timeout=115)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)  # none may be left if it takes too long
        assert program.returncode == 0, errors
        return sorted(output.strip().split("\n"))

    return run


def test_under_torchrun_whose_agent_holds_the_port(run_program):
    """Twice in one process, in the same store."""
    twice = ALL_REDUCE + "\nmain()\ndist.is_initialized() and dist.destroy_process_group()\nmain()\n"
    said = run_program(twice, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    assert said == ["rank 0 of 2"] * 2 + ["rank 1 of 2"] * 2


def test_in_forked_processes_with_a_file(run_program):
    assert run_program(ALL_REDUCE, size=2) == ["rank 0 of 2", "rank 1 of 2"]


def test_a_rank_that_ends_without_a_word_is_named_by_the_others(run_program):
    """In DistributedDataParallel, whose C++ code makes the call, and in torch.distributed."""
    assert run_program(DYING, size=3) == ["['no rank True', '2 True']"] * 2
