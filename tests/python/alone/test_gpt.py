# test_gpt.py: the small language model learns the same, however it is laid out over ranks.
# SPDX-License-Identifier: Apache-2.0
import re

import pytest

SMALL = ("--steps", "21", "--write", "12", "--batch", "8", "--length", "32", "--width", "32")


def learn(run_ranks, repository, ranks, *options):
    run = run_ranks(ranks, repository / "examples/gpt/train.py", *SMALL, *options, timeout=110, env={"OMP_NUM_THREADS": "1"})
    assert run.returncode == 0, run.stdout + run.stderr
    losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+)", run.stdout)]
    held = [float(number) for number in re.findall(r"([0-9.]+) MiB of", run.stdout)]
    told = re.findall(r"accuracy +([0-9.]+) %.* ([0-9.]+) % in communication", run.stdout)
    assert len(losses) == 3 and len(held) == 3 and len(told) == 3
    return losses, held


@pytest.fixture(scope="module")
def one_process(tuttirun, repository, tmp_path_factory):
    import os
    import subprocess
    import sys

    run = subprocess.run([tuttirun, "-n", "1", sys.executable, repository / "examples/gpt/train.py", *SMALL], capture_output=True,
                         text=True, timeout=120, env={**os.environ, "PYTHONPATH": str(repository / "python"), "OMP_NUM_THREADS": "1"})
    assert run.returncode == 0, run.stderr
    return [float(loss) for loss in re.findall(r"loss ([0-9.]+)", run.stdout)]


def test_it_learns(one_process):
    assert one_process[-1] < one_process[0] - 1


@pytest.mark.parametrize("ranks, options", (
    pytest.param(4, ("--tensor", "2"), marks=pytest.mark.soak), (2, ("--stage", "3"))))
def test_every_layout_gives_the_same_losses(ranks, options, one_process, run_ranks, repository):
    losses, _ = learn(run_ranks, repository, ranks, *options)
    assert losses == pytest.approx(one_process, abs=2e-3)
