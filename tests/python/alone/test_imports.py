# test_imports.py: what an import brings, and what it leaves alone.
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys

import pytest

FRAMEWORKS = ("torch", "jax", "tensorflow")


def says(repository, code):
    """What a fresh Python prints."""
    environment = {**os.environ, "PYTHONPATH": str(repository / "python"), "TF_CPP_MIN_LOG_LEVEL": "2"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_import_star_brings_no_framework_and_rebinds_nothing(repository):
    code = f"""
import builtins, sys
torch = jax = tensorflow = np = "mine"
before = dict(globals())
from tutti import *
assert not set(sys.modules) & set({FRAMEWORKS}), set(sys.modules) & set({FRAMEWORKS})
assert {{name for name in before if globals()[name] is not before[name]}} <= {{"before"}}
hidden = [name for name in globals() if name not in before and hasattr(builtins, name)]
assert not hidden, hidden
print(all_reduce.__name__, average.__name__, Group.__name__)
"""
    assert says(repository, code) == "all_reduce average Group"


@pytest.mark.parametrize(
    "framework, name",
    [("jax", "training.zero"), ("jax", "value_and_grad"), ("tensorflow", "training.averaging"),
     ("tensorflow", "GradientTape"), ("torch", "compression.PowerSgd")],
)
def test_documented_modules_need_no_import_of_their_own(framework, name, repository):
    pytest.importorskip(framework)
    assert says(repository, f"import tutti; print(tutti.{framework}.{name}.__name__)") == name.rpartition(".")[2]


def test_everything_is_listed(repository):
    code = "import tutti; print({'torch', 'breakpoint', 'zero', 'average', 'all_reduce'} - set(dir(tutti)))"
    assert says(repository, code) == "set()"
