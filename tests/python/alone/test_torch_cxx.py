# test_torch_cxx.py: the torch backend's part in C++ passes the tests of the Python class, and is loaded from safe places only.
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
TESTS = Path(__file__).parents[1]
FILES = ["test_torch_distributed.py", "test_torch_distributed_life.py", "test_torch_distributed_training.py"]


@pytest.mark.soak  # compiles for half a minute
@pytest.mark.deadline(900)
def test_the_backend_in_cxx_passes_the_tests_of_the_python_class(tmp_path):
    tuttirun = TESTS.parents[1] / "build/release/src/launch/tuttirun"
    environment = os.environ | {"TUTTI_TORCH_BACKEND": "cpp", "XDG_CACHE_HOME": str(tmp_path)}
    command = [tuttirun, "-n", "2", "--timeout", "800s", sys.executable, "-m", "pytest", "-q"]
    ran = subprocess.run(
        [*command, *(TESTS / file for file in FILES)], env=environment, capture_output=True, text=True, timeout=850
    )
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
    assert len(list((tmp_path / "tutti").glob("torch-*.so"))) == 1


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"TUTTI_TORCH_BACKEND": "rust"}, "TUTTI_TORCH_BACKEND=rust: say python or cpp"),
        ({"TUTTI_TORCH_BACKEND": "cpp", "CXX": "no-such-compiler"}, "needs a compiler for C++20"),
        ({"TUTTI_TORCH_BACKEND": "cpp"}, "others may write there"),
    ],
)
def test_what_keeps_the_backend_in_cxx_from_being_loaded_is_said(tmp_path, variables, text):
    (tmp_path / "tutti").mkdir()
    (tmp_path / "tutti").chmod(0o777)
    program = """
import torch.distributed as dist, tutti.torch
dist.init_process_group("tutti", store=dist.HashStore(), rank=0, world_size=1)
"""
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)} | variables
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100
    )
    assert ran.returncode != 0 and text in ran.stderr, ran.stderr
