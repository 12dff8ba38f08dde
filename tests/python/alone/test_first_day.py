# test_first_day.py: programs as users of mpi4py, torch.distributed and Horovod write them do what they say, on every backend.
# SPDX-License-Identifier: Apache-2.0
import functools
import json
import os
import pathlib
import subprocess
import sys

import pytest

FIRST_DAY = pathlib.Path(__file__).resolve().parents[2] / "first_day"
PROGRAMS = sorted((FIRST_DAY / "python").glob("*.py"))
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "NODE_", "MASTER_", "TUTTI_", "OMPI_", "PMI", "SLURM_", "TORCHELASTIC_")


@functools.cache
def what_is_wrong(backend):
    """By program. All are run at once: starting Python takes longer than most of them."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    environment = kept | {"PYTHONPATH": str(FIRST_DAY.parents[1] / "python"), "TUTTI_BACKEND": backend, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, FIRST_DAY / "run.py", "--json"], env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.deadline(320)
@pytest.mark.parametrize("backend", ["shm", "native"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_the_program_does_what_it_says(program, backend):
    if "import torch" in program.read_text():
        pytest.importorskip("torch")
    assert what_is_wrong(backend)[program.stem] == ""


def test_there_are_programs_of_every_kind():
    names = [path.stem for path in PROGRAMS]
    assert len(names) >= 40
    for peer in ("mpi_", "torch_", "horovod_"):
        assert len([name for name in names if name.startswith(peer)]) >= 10
