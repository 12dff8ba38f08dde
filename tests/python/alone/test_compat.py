# test_compat.py: programs for TorchShard, mpi4jax, Horovod and Ivy run on 2 ranks with other import lines, and nothing else changed.
# SPDX-License-Identifier: Apache-2.0
import importlib.util
import pathlib
import re

import pytest

PROGRAMS = pathlib.Path(__file__).parent / "compat"
MPI = ("from mpi4py import MPI", "from tutti.compat.mpi4jax import MPI")
# By program: the packages that it needs, and its import lines, as they are and as they become.
IMPORTS = {
    "torchshard": ("torch", ("import torchshard as ts", "import tutti.compat.torchshard as ts")),
    "torchshard_spawn": ("torch", ("import torchshard as ts", "import tutti.compat.torchshard as ts")),
    "mpi4jax": ("jax", MPI, ("import mpi4jax", "import tutti.compat.mpi4jax as mpi4jax")),
    "mpi4jax_tokens": ("jax", MPI, ("import mpi4jax", "from tutti.compat.mpi4jax import tokens as mpi4jax")),
    "horovod": ("torch", ("import horovod.torch as hvd", "import tutti.compat.horovod.torch as hvd")),
    "horovod_run": ("torch", ("import horovod", "import tutti.compat.horovod as horovod"),
                    ("import horovod.torch as hvd", "import tutti.compat.horovod.torch as hvd")),
    "ivy": ("ivy", ("import ivy.distributed as i_dist", "import tutti.compat.ivy as i_dist")),
}


SLOW = {"ivy"}  # to import
STARTS_ITS_OWN = {"horovod_run", "torchshard_spawn"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.soak, pytest.mark.deadline(400)] * (name in SLOW)) for name in IMPORTS])
def test_the_program_runs_when_its_import_lines_are_changed(name, run_ranks):
    package, *changes = IMPORTS[name]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    program = (PROGRAMS / f"{name}_program.py").read_text()
    for theirs, ours in changes:
        program, count = re.subn(rf"^{re.escape(theirs)}$", ours, program, flags=re.MULTILINE)
        assert count == 1, f"{name}_program.py has no line {theirs!r}"
    seconds = 300 if name in SLOW else 100
    done = run_ranks(1 if name in STARTS_ITS_OWN else 2, program, timeout=seconds,
                     env={"OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(name.partition("_")[0]) == 2, done.stdout + done.stderr
